//! Tries a server's addresses (RFC 8305, section 5): each a quarter of a second after the one
//! before it, or at once when that one failed. The first connection wins.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

/// Connection Attempt Delay (RFC 8305, section 5).
const STAGGER: Duration = Duration::from_millis(250);

/// The first connection to one of the addresses.
///
/// # Errors
/// The last address's failure, when all failed.
pub(super) async fn first_of<S, F>(
    addresses: Vec<SocketAddr>,
    connect: impl Fn(SocketAddr) -> F,
) -> io::Result<S>
where
    S: Send + 'static,
    F: Future<Output = io::Result<S>> + Send + 'static,
{
    let mut addresses = addresses.into_iter();
    // Most names and all addresses have one: no task is made for it.
    if let [only] = addresses.as_slice() {
        return connect(*only).await;
    }
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    let mut attempts = JoinSet::new();
    loop {
        if let Some(address) = addresses.next() {
            attempts.spawn(connect(address));
        } else if attempts.is_empty() {
            return Err(failure);
        }
        let more = !addresses.as_slice().is_empty();
        tokio::select! {
            Some(joined) = attempts.join_next() => match joined {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => failure = error,
                Err(error) => failure = io::Error::other(error),
            },
            () = sleep(STAGGER), if more => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn addresses(count: u8) -> Vec<SocketAddr> {
        (1..=count).map(|last| SocketAddr::from(([192, 0, 2, last], 80))).collect()
    }

    fn last_byte(address: SocketAddr) -> u8 {
        match address {
            SocketAddr::V4(v4) => v4.ip().octets()[3],
            SocketAddr::V6(_) => 0,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_address_is_overtaken_and_a_dead_one_passed_at_once() {
        let begun = tokio::time::Instant::now();
        let tried = Arc::new(AtomicUsize::new(0));
        let connect = |address| {
            tried.fetch_add(1, Ordering::Relaxed);
            async move {
                match last_byte(address) {
                    1 => sleep(Duration::from_secs(60)).await,
                    2 => return Err(io::ErrorKind::ConnectionRefused.into()),
                    _ => {}
                }
                Ok(last_byte(address))
            }
        };
        assert_eq!(first_of(addresses(4), connect).await.unwrap(), 3);
        assert_eq!(tried.load(Ordering::Relaxed), 3);
        assert_eq!(begun.elapsed(), STAGGER);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_failure_is_told_when_all_failed() {
        for count in [1, 2, 5] {
            let connect = |_| async { Err::<(), _>(io::ErrorKind::ConnectionRefused.into()) };
            let error = first_of(addresses(count), connect).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        }
    }
}
