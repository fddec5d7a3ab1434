//! One module a command.

pub(crate) mod bench;
pub(crate) mod cancel;
pub(crate) mod delete;
pub(crate) mod demo;
pub(crate) mod generate;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod migrate;
pub(crate) mod results;
pub(crate) mod serve;
pub(crate) mod solve;
pub(crate) mod submit;
pub(crate) mod up;
pub(crate) mod watch;
pub(crate) mod work;
