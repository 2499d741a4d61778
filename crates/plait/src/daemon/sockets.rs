//! The gateway's sockets by number. A number stays as long as its socket; a free one may be used
//! again.

use plait_proto::config::SocketId;

/// A table with gaps.
#[derive(Debug)]
pub(super) struct Sockets<U>(Vec<Option<U>>);

impl<U> Default for Sockets<U> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<U> Sockets<U> {
    /// Puts a socket in its place.
    pub(super) fn insert(&mut self, id: SocketId, socket: U) {
        let at = usize::from(id.0);
        if at >= self.0.len() {
            self.0.resize_with(at + 1, || None);
        }
        self.0[at] = Some(socket);
    }

    /// Takes a socket out of its place.
    pub(super) fn remove(&mut self, id: SocketId) -> Option<U> {
        self.0.get_mut(usize::from(id.0)).and_then(Option::take)
    }

    /// A socket, if there is one with that number.
    pub(super) fn get_mut(&mut self, id: SocketId) -> Option<&mut U> {
        self.0.get_mut(usize::from(id.0)).and_then(Option::as_mut)
    }

    /// A socket, if there is one with that number.
    pub(super) fn get(&self, id: SocketId) -> Option<&U> {
        self.0.get(usize::from(id.0)).and_then(Option::as_ref)
    }

    /// One more than the highest number.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// All sockets with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (SocketId, &U)> {
        let numbered = self.0.iter().enumerate();
        numbered.filter_map(|(at, socket)| Some((SocketId(at as u16), socket.as_ref()?)))
    }
}
