//! What this machine has.

/// Cores that this process may use; 1 where that cannot be told.
pub(crate) fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX))
}
