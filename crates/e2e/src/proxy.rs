//! A wire that can be cut: forwards connections to a server, as many bytes as it is told.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    thread,
};

/// A forwarder on loopback; it ends with its process.
#[derive(Debug)]
pub struct Proxy {
    url: String,
    target: Arc<Mutex<String>>,
    limit: Arc<AtomicU64>,
    /// The clients' ends of connections that have not been cut.
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    /// Forwards to a server such as `http://127.0.0.1:50051`, without a limit at first.
    ///
    /// # Panics
    /// When it cannot listen.
    #[must_use]
    pub fn start(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let target = Arc::new(Mutex::new(target.to_owned()));
        let limit = Arc::new(AtomicU64::new(u64::MAX));
        let open: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let (to, left, kept) = (Arc::clone(&target), Arc::clone(&limit), Arc::clone(&open));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                lock(&kept).extend(client.try_clone());
                let address = lock(&to).clone();
                forward(client, address.trim_start_matches("http://"), left.load(SeqCst));
            }
        });
        Self { url, target, limit, open }
    }

    /// Where it listens.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Later connections go to another server.
    pub fn point_to(&self, target: &str) {
        target.clone_into(&mut lock(&self.target));
    }

    /// Cuts all connections that there are.
    pub fn cut(&self) {
        for client in lock(&self.open).drain(..) {
            // An error means that it is cut already.
            client.shutdown(Shutdown::Both).ok();
        }
    }

    /// Of later connections, so many bytes of the server reach the client; then the connection is cut.
    pub fn cut_after(&self, bytes: u64) {
        self.limit.store(bytes, SeqCst);
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn forward(client: TcpStream, target: &str, limit: u64) {
    let Ok(server) = TcpStream::connect(target) else { return };
    let (up_from, up_to) = (client.try_clone(), server.try_clone());
    if let (Ok(from), Ok(to)) = (up_from, up_to) {
        thread::spawn(move || copy(from, to, u64::MAX));
    }
    thread::spawn(move || copy(server, client, limit));
}

/// Copies up to `limit` bytes, then cuts both connections.
fn copy(mut from: TcpStream, mut to: TcpStream, mut limit: u64) {
    let mut buffer = [0; 4_096];
    while limit > 0 {
        let most = usize::try_from(limit).unwrap_or(usize::MAX).min(buffer.len());
        match from.read(&mut buffer[..most]) {
            Ok(count) if count > 0 && to.write_all(&buffer[..count]).is_ok() => limit -= count as u64,
            _ => break,
        }
    }
    // Errors mean that they are cut already.
    for stream in [from, to] {
        stream.shutdown(Shutdown::Both).ok();
    }
}
