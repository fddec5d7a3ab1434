//! Settings of a service as a whole: how long batches stay, how much is taken in. `serve` and `up` have the same.

use std::time::Duration;

use clap::Args as ClapArgs;

const DAY_SECONDS: u64 = 86_400;

/// How long batches stay and how much is taken in.
#[derive(ClapArgs, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Service {
    /// Days that a batch stays after it has succeeded; then it is deleted. Of batches that are created from now on.
    #[arg(long, env = "SUDOKU_BATCH_KEEP_DAYS", default_value_t = 7, value_name = "DAYS", value_parser = days())]
    pub(crate) keep_days: u32,

    /// Days that a batch stays after it was cancelled.
    #[arg(long, env = "SUDOKU_BATCH_KEEP_CANCELLED_DAYS", default_value_t = 1, value_name = "DAYS", value_parser = days())]
    pub(crate) keep_cancelled_days: u32,

    /// Puzzles of one tenant that may wait or be solved at a time; beyond that, appends are told to come back later.
    #[arg(long, env = "SUDOKU_BATCH_QUEUED_MAX_TENANT", default_value_t = 100_000_000, value_name = "PUZZLES", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) queued_max_tenant: u64,

    /// The same for all tenants together.
    #[arg(long, env = "SUDOKU_BATCH_QUEUED_MAX", default_value_t = 400_000_000, value_name = "PUZZLES", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) queued_max: u64,

    /// Bytes of the database on disk beyond which nothing is taken in; 0: no limit.
    #[arg(long, env = "SUDOKU_BATCH_DATABASE_BYTES_MAX", default_value_t = 0, value_name = "BYTES")]
    pub(crate) database_bytes_max: u64,

    /// Seconds for which a client may be silent before it is asked whether it lives; its connection is given up a third of this later.
    #[arg(long, env = "SUDOKU_BATCH_KEEPALIVE", default_value_t = 30, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub(crate) keepalive: u32,
}

fn days() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=3_650)
}

impl Service {
    pub(crate) fn keep(&self) -> store::Keep {
        let days = |days: u32| Duration::from_secs(u64::from(days) * DAY_SECONDS);
        store::Keep { succeeded: days(self.keep_days), cancelled: days(self.keep_cancelled_days) }
    }

    pub(crate) fn keepalive(&self) -> Duration {
        Duration::from_secs(self.keepalive.into())
    }

    pub(crate) fn quotas(&self) -> server::Quotas {
        server::Quotas {
            queued_max_tenant: self.queued_max_tenant,
            queued_max: self.queued_max,
            database_bytes_max: self.database_bytes_max,
        }
    }

    /// The options that make a server with these settings.
    pub(crate) fn options(&self) -> Vec<String> {
        let Self {
            keep_days,
            keep_cancelled_days,
            queued_max_tenant,
            queued_max,
            database_bytes_max,
            keepalive,
        } = self;
        vec![
            format!("--keep-days={keep_days}"),
            format!("--keep-cancelled-days={keep_cancelled_days}"),
            format!("--queued-max-tenant={queued_max_tenant}"),
            format!("--queued-max={queued_max}"),
            format!("--database-bytes-max={database_bytes_max}"),
            format!("--keepalive={keepalive}"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::super::{Args, Command};

    fn parse(command: &str, options: &[String]) -> Command {
        let fixed: &[&str] = match command {
            "serve" => &["sudoku-batch", "serve", "--database-url", "postgres://x"],
            _ => &["sudoku-batch", "up"],
        };
        let words = fixed.iter().map(|word| (*word).to_owned()).chain(options.iter().cloned());
        Args::try_parse_from(words).expect("well formed").command
    }

    #[test]
    fn up_starts_its_server_with_its_own_settings() {
        let words = ["--keep-days", "30", "--queued-max-tenant=5", "--database-bytes-max", "1000000"];
        let Command::Up(up) = parse("up", &words.map(str::to_owned)) else { panic!("up") };
        let Command::Serve(serve) = parse("serve", &up.service.options()) else { panic!("serve") };
        assert_eq!(serve.service, up.service);
        assert_eq!((serve.service.keep_days, serve.service.database_bytes_max), (30, 1_000_000));
    }

    #[test]
    fn nothing_is_kept_for_no_time_and_a_queue_for_nothing_is_refused() {
        for option in ["--keep-days=0", "--keep-cancelled-days=0", "--queued-max-tenant=0", "--queued-max=0"]
        {
            assert!(Args::try_parse_from(["sudoku-batch", "up", option]).is_err(), "{option}");
        }
    }
}
