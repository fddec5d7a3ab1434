//! Who is calling. Until there are keys a tenant is named by metadata, and the server listens on loopback only.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use store::{Store, TenantId};
use tonic::metadata::MetadataMap;

use crate::{
    limits::{TENANT_CHARS_MAX, TENANTS_REMEMBERED_MAX},
    status::Refusal,
};

const METADATA_KEY: &str = "sudoku-tenant";
const DEFAULT_TENANT: &str = "default";

/// Tenants by name, remembered: their numbers never change.
#[derive(Debug, Default)]
pub(crate) struct Tenants {
    known: Mutex<HashMap<String, TenantId>>,
}

impl Tenants {
    /// The caller, made if it was never named before: for calls that create.
    pub(crate) async fn creating(&self, store: &Store, metadata: &MetadataMap) -> Result<TenantId, Refusal> {
        let name = name(metadata)?;
        if let Some(tenant) = self.recall(name) {
            return Ok(tenant);
        }
        let tenant = store.tenant(name).await?;
        self.remember(name, tenant);
        Ok(tenant)
    }

    /// The caller, if it was ever named: for calls that need a batch. `None` can have no batch.
    pub(crate) async fn existing(
        &self,
        store: &Store,
        metadata: &MetadataMap,
    ) -> Result<Option<TenantId>, Refusal> {
        let name = name(metadata)?;
        if let Some(tenant) = self.recall(name) {
            return Ok(Some(tenant));
        }
        let found = store.find_tenant(name).await?;
        if let Some(tenant) = found {
            self.remember(name, tenant);
        }
        Ok(found)
    }

    fn recall(&self, name: &str) -> Option<TenantId> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied()
    }

    fn remember(&self, name: &str, tenant: TenantId) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < TENANTS_REMEMBERED_MAX {
            known.insert(name.to_owned(), tenant);
        }
    }
}

fn name(metadata: &MetadataMap) -> Result<&str, Refusal> {
    let Some(value) = metadata.get(METADATA_KEY) else { return Ok(DEFAULT_TENANT) };
    value.to_str().ok().filter(|name| is_tenant_name(name)).ok_or_else(|| Refusal::BadArgument {
        field: METADATA_KEY,
        why: "1 to 63 of [a-z0-9-], not beginning or ending with -".to_owned(),
    })
}

fn is_tenant_name(name: &str) -> bool {
    (1..=TENANT_CHARS_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
}
