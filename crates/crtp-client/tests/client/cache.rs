//! Tables kept between connections.

use std::sync::{Arc, Mutex};

use crtp_client::{CacheError, Config, Event, FileCache, MemoryCache, Table, TableCache, TableKey};

use crate::pair::Pair;

/// A cache that two clients share.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<MemoryCache>>);

impl TableCache for Shared {
    fn load(&mut self, key: &TableKey) -> Result<Option<Table>, CacheError> {
        self.0.lock().unwrap().load(key)
    }

    fn store(&mut self, key: &TableKey, table: &Table) -> Result<(), CacheError> {
        self.0.lock().unwrap().store(key, table)
    }
}

/// Connects; says whether the tables were cached, and how many entries were asked for.
fn connect(cache: Box<dyn TableCache>, change: impl FnOnce(&mut Pair)) -> (bool, usize) {
    let mut pair = Pair::with_cache(Config::default(), cache);
    change(&mut pair);
    pair.client.connect(pair.now);
    let event = pair.until(|event| matches!(event, Event::Connected { .. }));
    let Event::Connected { from_cache, .. } = event else {
        panic!("{event:?}");
    };
    assert_eq!(
        pair.client.log_table().unwrap().len(),
        pair.drone.logs.len()
    );
    (from_cache, pair.taken(0x50).len() + pair.taken(0x20).len())
}

#[test]
fn the_second_connection_asks_for_one_entry_of_each_table() {
    let cache = Shared::default();
    let again = || Box::new(cache.clone());
    assert_eq!(connect(again(), |_| {}), (false, 126));
    assert_eq!(connect(again(), |_| {}), (true, 4));
}

#[test]
fn a_table_with_the_same_checksum_and_other_names_is_fetched() {
    let cache = Shared::default();
    connect(Box::new(cache.clone()), |_| {});
    let renamed = |pair: &mut Pair| {
        for (name, _) in &mut pair.drone.logs {
            *name = name.replace('f', "g").replace('b', "c");
        }
    };
    assert_eq!(connect(Box::new(cache), renamed), (false, 121 + 1 + 2));
}

#[test]
fn another_count_or_version_is_another_table() {
    let cache = Shared::default();
    connect(Box::new(cache.clone()), |_| {});
    let shorter = |pair: &mut Pair| pair.drone.logs.truncate(119);
    assert!(!connect(Box::new(cache.clone()), shorter).0);
    let older = |pair: &mut Pair| pair.drone.version = crtp::ProtocolVersion(11);
    assert!(!connect(Box::new(cache), older).0);
}

#[test]
fn files_keep_tables_and_damaged_ones_are_reported_and_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let tables = folder.path().join("tables");
    let cache = || Box::new(FileCache::new(&tables));
    assert!(!connect(cache(), |_| {}).0);
    assert!(connect(cache(), |_| {}).0);
    for file in std::fs::read_dir(&tables).unwrap() {
        std::fs::write(file.unwrap().path(), "{\"schema\": 1").unwrap();
    }
    let mut pair = Pair::with_cache(Config::default(), cache());
    pair.client.connect(pair.now);
    let notice = pair.until(|event| matches!(event, Event::Notice(_)));
    assert!(matches!(notice, Event::Notice(text) if text.contains("table cache")));
    pair.until(|event| {
        matches!(
            event,
            Event::Connected {
                from_cache: false,
                ..
            }
        )
    });
    assert!(connect(cache(), |_| {}).0, "repaired");
}
