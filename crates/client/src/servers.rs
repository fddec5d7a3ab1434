//! The servers behind one client, and the connections to them.
//!
//! A server takes 32 streams on one connection, and lets the next call wait without a word. So streams are spread: a connection with 24 of them is left to the calls that are short.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tonic::transport::{Channel, Endpoint};

use crate::{Error, error::root_cause};

/// Streams that one connection is given, at the most.
const STREAMS_MAX: usize = 24;

/// One or several servers of the same service.
#[derive(Debug)]
pub(crate) struct Servers {
    servers: Vec<Server>,
    /// The place of the one that calls go to.
    current: AtomicUsize,
}

#[derive(Debug)]
struct Server {
    endpoint: Endpoint,
    /// The first is there from the start. Connections are kept: each connects again by itself when it was lost and is needed.
    connections: Mutex<Vec<Connection>>,
    /// When it last said, to whichever call, that it stops or that its database is away.
    said: Mutex<Option<Instant>>,
}

#[derive(Clone, Debug)]
struct Connection {
    channel: Channel,
    streams: Arc<AtomicUsize>,
}

/// A stream's place on its connection.
#[derive(Debug)]
pub(crate) struct StreamPlace(Arc<AtomicUsize>);

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A way to a server.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) channel: Channel,
    /// Which server it leads to.
    place: usize,
}

impl Servers {
    /// Connects to the first of them that answers.
    ///
    /// # Errors
    /// Of the last one.
    pub(crate) async fn connect(endpoints: Vec<Endpoint>) -> Result<Self, Error> {
        let mut servers = Vec::with_capacity(endpoints.len());
        let mut found = None;
        let mut last = Error::BadUrl { url: String::new(), reason: "no server is named".to_owned() };
        for (place, endpoint) in endpoints.into_iter().enumerate() {
            let connected = match found {
                // That one will do.
                Some(_) => Ok(endpoint.connect_lazy()),
                None => endpoint.connect().await,
            };
            let channel = match connected {
                Ok(channel) => {
                    found.get_or_insert(place);
                    channel
                }
                Err(error) => {
                    last = Error::Unreachable {
                        url: endpoint.uri().to_string().trim_end_matches('/').to_owned(),
                        reason: root_cause(&error),
                    };
                    endpoint.connect_lazy()
                }
            };
            let connections = Mutex::new(vec![Connection { channel, streams: Arc::default() }]);
            servers.push(Server { endpoint, connections, said: Mutex::default() });
        }
        let current = AtomicUsize::new(found.ok_or(last)?);
        Ok(Self { servers, current })
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.servers.len()
    }

    /// For a call that is short.
    pub(crate) fn route(&self) -> Route {
        let place = self.current.load(Ordering::Relaxed);
        let connections = self.servers[place].lock();
        Route { channel: connections[0].channel.clone(), place }
    }

    /// For a stream.
    pub(crate) fn stream_route(&self) -> (Route, StreamPlace) {
        let place = self.current.load(Ordering::Relaxed);
        let server = &self.servers[place];
        let mut connections = server.lock();
        let has_room = |connection: &&Connection| connection.streams.load(Ordering::Relaxed) < STREAMS_MAX;
        let found = connections.iter().find(has_room).cloned();
        let connection = found.unwrap_or_else(|| {
            let channel = server.endpoint.connect_lazy();
            let connection = Connection { channel, streams: Arc::default() };
            connections.push(connection.clone());
            connection
        });
        connection.streams.fetch_add(1, Ordering::Relaxed);
        (Route { channel: connection.channel, place }, StreamPlace(connection.streams))
    }

    /// The server at the end of a route has said that it is going, or cannot answer for a while.
    pub(crate) fn has_said(&self, route: &Route) {
        *self.servers[route.place].said() = Some(Instant::now());
    }

    /// Whether it has said so to any call within so long. What breaks then breaks for that reason.
    pub(crate) fn has_said_within(&self, route: &Route, time: Duration) -> bool {
        self.servers[route.place].said().is_some_and(|said| said.elapsed() < time)
    }

    /// Calls go to the next server from now on, unless another call has seen to that.
    pub(crate) fn leave(&self, route: &Route) {
        let next = (route.place + 1) % self.servers.len();
        // An error means that calls go elsewhere already.
        self.current.compare_exchange(route.place, next, Ordering::Relaxed, Ordering::Relaxed).ok();
    }
}

impl Server {
    fn lock(&self) -> MutexGuard<'_, Vec<Connection>> {
        // A list that only grows is sound whatever a panicking holder was about to do.
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn said(&self) -> MutexGuard<'_, Option<Instant>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(count: usize) -> Servers {
        // Nobody has to answer: what is tested is who is asked.
        let server = |_| {
            let endpoint = Endpoint::from_static("http://127.0.0.1:1");
            let channel = endpoint.connect_lazy();
            let connections = Mutex::new(vec![Connection { channel, streams: Arc::default() }]);
            Server { endpoint, connections, said: Mutex::default() }
        };
        Servers { servers: (0..count).map(server).collect(), current: AtomicUsize::new(0) }
    }

    #[tokio::test]
    async fn the_streams_of_a_connection_are_bounded_and_their_places_come_back() {
        let servers = servers(1);
        let places: Vec<_> = (0..=2 * STREAMS_MAX).map(|_| servers.stream_route().1).collect();
        assert_eq!(servers.servers[0].lock().len(), 3);
        drop(places);
        let again: Vec<_> = (0..2 * STREAMS_MAX).map(|_| servers.stream_route().1).collect();
        assert_eq!(servers.servers[0].lock().len(), 3);
        drop(again);
    }

    #[tokio::test]
    async fn a_server_is_left_once_however_many_calls_fail_there() {
        let servers = servers(3);
        let routes: Vec<_> = (0..5).map(|_| servers.route()).collect();
        for route in &routes {
            servers.leave(route);
        }
        assert_eq!(servers.route().place, 1);
        servers.leave(&servers.route());
        servers.leave(&servers.route());
        assert_eq!(servers.route().place, 0);
    }
}
