//! Joins short pieces into one.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::AsyncWrite;

/// The total length up to which pieces are written as one.
const SHORT: usize = 2048;

/// Writes pieces. One piece costs the kernel less than a list of pieces, even a list of one.
pub(crate) fn poll_write<S: AsyncWrite + Unpin>(
    stream: &mut S,
    cx: &mut Context<'_>,
    parts: &[IoSlice<'_>],
) -> Poll<io::Result<usize>> {
    if let [part] = parts {
        return Pin::new(stream).poll_write(cx, part);
    }
    let length: usize = parts.iter().map(|part| part.len()).sum();
    if length > SHORT {
        return Pin::new(stream).poll_write_vectored(cx, parts);
    }
    let mut whole = [0; SHORT];
    let mut end = 0;
    for part in parts {
        whole[end..end + part.len()].copy_from_slice(part);
        end += part.len();
    }
    Pin::new(stream).poll_write(cx, &whole[..end])
}

/// Joins two pieces, of which the second is usually empty. An empty result keeps no memory.
pub(crate) fn join(first: Bytes, second: &[u8]) -> Bytes {
    match (&*first, second) {
        ([], []) => Bytes::new(),
        (_, []) => first,
        _ => [&first, second].concat().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps each piece that it is given.
    #[derive(Default)]
    struct Pieces(Vec<Vec<usize>>);

    impl AsyncWrite for Pieces {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.0.push(vec![bytes.len()]);
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            parts: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
            let length = lengths.iter().sum();
            self.0.push(lengths);
            Poll::Ready(Ok(length))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn short_pieces_are_one_and_long_ones_stay_as_they_are() {
        let mut pieces = Pieces::default();
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let bytes = [7; SHORT];
        for lengths in [&[3, 4][..], &[SHORT], &[1, SHORT], &[SHORT - 1, 1]] {
            let parts: Vec<_> =
                lengths.iter().map(|length| IoSlice::new(&bytes[..*length])).collect();
            let written = poll_write(&mut pieces, &mut cx, &parts);
            assert!(matches!(written, Poll::Ready(Ok(n)) if n == lengths.iter().sum::<usize>()));
        }
        assert_eq!(pieces.0, [vec![7], vec![SHORT], vec![1, SHORT], vec![SHORT]]);
    }
}
