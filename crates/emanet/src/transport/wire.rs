//! A connection that knows how many bytes the socket took, and whether anything lies in it that nobody asked for.

use emanet_core::call::NotSent;
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::client::TlsStream;

/// A TCP connection that counts the bytes the kernel accepted.
///
/// It sits below TLS: `TlsStream` may fail a write after part of it left, and may take bytes that never leave. What the kernel
/// accepted is exactly what may have been delivered, provided nobody writes any more when the counter is read.
#[derive(Debug)]
pub(super) struct Counted {
    tcp: TcpStream,
    accepted: u64,
}

impl Counted {
    pub(super) fn new(tcp: TcpStream) -> Self {
        Self { tcp, accepted: 0 }
    }

    /// A one-byte peek past the runtime: its idea of readiness lags behind the kernel's.
    fn peek(&self) -> io::Result<usize> {
        let twin = std::net::TcpStream::from(self.tcp.as_fd().try_clone_to_owned()?);
        twin.peek(&mut [0])
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let accepted = ready!(Pin::new(&mut self.tcp).poll_write(cx, bytes))?;
        self.accepted += accepted as u64;
        Poll::Ready(Ok(accepted))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}

#[derive(Debug)]
enum Stream {
    Plain(Counted),
    Encrypted(Box<TlsStream<Counted>>),
}

/// What a peek found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peeked {
    /// Open, and nothing to read.
    Clean,
    /// Closed, broken, or holding bytes that belong to no request of ours.
    Dirty,
}

/// A connection, plain or encrypted, between one exchange and the next.
#[derive(Debug)]
pub(super) struct Wire {
    stream: Stream,
    mark: u64,
    exchanges: u32,
}

impl Wire {
    pub(super) fn plain(counted: Counted) -> Self {
        Self::new(Stream::Plain(counted))
    }

    pub(super) fn encrypted(stream: TlsStream<Counted>) -> Self {
        Self::new(Stream::Encrypted(Box::new(stream)))
    }

    fn new(stream: Stream) -> Self {
        Self {
            stream,
            mark: 0,
            exchanges: 0,
        }
    }

    /// Begins an exchange: what was accepted so far does not belong to it.
    pub(super) fn begin(&mut self) {
        self.mark = self.counted().accepted;
        self.exchanges += 1;
    }

    /// Bytes the kernel accepted since the exchange began.
    pub(super) fn accepted(&self) -> u64 {
        self.counted().accepted - self.mark
    }

    /// Whether another exchange came before the current one.
    pub(super) fn is_reused(&self) -> bool {
        self.exchanges > 1
    }

    /// Why a call was not sent on this connection, if not one byte of it left.
    pub(super) fn never_used(&self) -> NotSent {
        match self.stream {
            _ if self.is_reused() => NotSent::StaleConnection,
            Stream::Plain(_) => NotSent::Connect,
            Stream::Encrypted(_) => NotSent::Tls,
        }
    }

    /// Looks whether the connection is fit for a request. Without this, a stray answer that waits in the socket would be taken
    /// for the answer to a request nobody read.
    pub(super) async fn peek(&mut self, deadline: Instant) -> Peeked {
        let looking = std::future::poll_fn(|cx| self.poll_peek(cx));
        timeout_at(deadline, looking).await.unwrap_or(Peeked::Dirty)
    }

    fn poll_peek(&mut self, cx: &mut Context<'_>) -> Poll<Peeked> {
        if let Stream::Encrypted(stream) = &mut self.stream {
            // Session tickets lie in the socket without being an answer. TLS takes them in; plain text it must not find.
            let mut byte = [0];
            if Pin::new(stream.as_mut())
                .poll_read(cx, &mut ReadBuf::new(&mut byte))
                .is_ready()
            {
                return Poll::Ready(Peeked::Dirty);
            }
        }
        match (self.counted().peek(), &self.stream) {
            (Err(error), _) if error.kind() == io::ErrorKind::WouldBlock => {
                Poll::Ready(Peeked::Clean)
            }
            // Bytes the runtime has not heard of yet; it will wake us when it has.
            (Ok(1..), Stream::Encrypted(_)) => Poll::Pending,
            _ => Poll::Ready(Peeked::Dirty),
        }
    }

    fn counted(&self) -> &Counted {
        match &self.stream {
            Stream::Plain(counted) => counted,
            Stream::Encrypted(stream) => stream.get_ref().0,
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Encrypted(stream) => Pin::new(stream.as_mut()).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Encrypted(stream) => Pin::new(stream.as_mut()).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Encrypted(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Encrypted(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
        }
    }
}
