//! Messages of the proto as its canonical JSON.

use anyhow::Context as _;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};

/// One message of `sudoku.v1` on one line.
pub(crate) fn line(name: &str, message: &impl Message) -> anyhow::Result<String> {
    let pool =
        DescriptorPool::decode(proto::DESCRIPTOR_SET).context("the built-in descriptors are damaged")?;
    let descriptor = pool
        .get_message_by_name(&format!("sudoku.v1.{name}"))
        .with_context(|| format!("the built-in descriptors lack {name}"))?;
    let message = DynamicMessage::decode(descriptor, &*message.encode_to_vec())?;
    Ok(serde_json::to_string(&message)?)
}
