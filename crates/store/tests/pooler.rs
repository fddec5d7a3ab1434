//! The store through a pooler that lends a server for one transaction at a time.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{collections::BTreeMap, time::Duration};

use e2e::{Database, Pooler, eventually};
use store::{Config, Durability, NewBatch, Store};

const IN_TRANSACTION: &str = "select count(*) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and state <> 'idle'";

async fn pooled(pooler: &Pooler, durability: Durability) -> Store {
    let config = Config {
        url: pooler.url().to_owned(),
        connections_max: 2,
        durability,
        application_name: "test".to_owned(),
        is_pooled: true,
    };
    let store = Store::connect(&config).await.unwrap();
    store.migrate().await.unwrap();
    store
}

fn new(name: &str) -> NewBatch {
    NewBatch {
        name: name.to_owned(),
        name_is_chosen: true,
        request_id: None,
        placement_limit: 10,
        priority: 0,
        display_name: String::new(),
        labels: BTreeMap::new(),
    }
}

#[tokio::test]
async fn whoever_loses_interest_in_a_statement_anywhere_leaves_all_of_it_or_nothing_and_no_transaction() {
    let database = Database::fresh();
    let pooler = Pooler::start(&database, 2, "");
    let store = pooled(&pooler, Durability::Synchronous).await;
    let tenant = store.tenant("default").await.unwrap();
    let mut made = 0;
    for number in 0..100 {
        let name = format!("batch-{number}");
        // From before it is begun until after it is committed.
        let time = Duration::from_micros(100 * number);
        let made_in_time = tokio::time::timeout(time, store.create_batch(tenant, &new(&name))).await;
        if let Ok(created) = made_in_time {
            created.unwrap();
            let stored = format!("select count(*) from batch where name = '{name}'");
            assert_eq!(database.value(&stored), "1", "what was told is committed");
            made += 1;
        }
    }
    assert!(made > 0, "the last had ten milliseconds");
    eventually("no transaction is left", || (database.value(IN_TRANSACTION) == "0").then_some(()));
    store.create_batch(tenant, &new("the-last")).await.unwrap();
    let twice = "select count(*) - count(distinct name) from batch";
    assert_eq!(database.value(twice), "0");
}

#[tokio::test]
async fn each_store_has_its_own_settings_on_the_same_server_and_an_error_leaves_it_usable() {
    let database = Database::fresh();
    // One server, lent to one of them after the other.
    let pooler = Pooler::start(&database, 1, "");
    let durable = pooled(&pooler, Durability::Synchronous).await;
    let relaxed = pooled(&pooler, Durability::Asynchronous).await;
    let tenant = durable.tenant("default").await.unwrap();
    // A trigger says under which settings it was run.
    database.execute(
        "create table seen (settings text);
        create function see() returns trigger language plpgsql as $$
        begin
            if new.name = 'refused' then raise exception 'refused'; end if;
            insert into seen
            select concat_ws(' ', current_setting('synchronous_commit'), current_setting('statement_timeout'),
                current_setting('plan_cache_mode'), current_setting('idle_in_transaction_session_timeout'));
            return new;
        end $$;
        create trigger see before insert on batch for each row execute function see()",
    );
    for _ in 0..3 {
        for store in [&durable, &relaxed] {
            let name = uuid::Uuid::new_v4().to_string();
            store.create_batch(tenant, &new(&name)).await.unwrap();
            store.create_batch(tenant, &new("refused")).await.unwrap_err();
        }
    }
    let seen = ["on", "off"].map(|word| format!("{word} 1min force_generic_plan 10s"));
    assert_eq!(database.query("select settings from seen"), [seen.clone(), seen.clone(), seen].concat());
    assert_eq!(database.value("select count(*) from batch where name = 'refused'"), "0");
    let servers = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
    assert_eq!(database.value(servers), "1", "the same one");
}
