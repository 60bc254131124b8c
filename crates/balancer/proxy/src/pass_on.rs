//! Forwards the methods of a wrapped stream that its wrapper does not change.

/// Writes methods of [`AsyncWrite`](tokio::io::AsyncWrite) that only call the same method of the
/// field `stream`.
macro_rules! pass_on {
    ($($method:ident),+ $(,)?) => {
        $($crate::pass_on::pass_on!(@ $method);)+
    };
    (@ poll_write) => {
        fn poll_write(
            mut self: ::std::pin::Pin<&mut Self>,
            cx: &mut ::std::task::Context<'_>,
            bytes: &[u8],
        ) -> ::std::task::Poll<::std::io::Result<usize>> {
            ::std::pin::Pin::new(&mut self.stream).poll_write(cx, bytes)
        }
    };
    (@ poll_write_vectored) => {
        fn poll_write_vectored(
            mut self: ::std::pin::Pin<&mut Self>,
            cx: &mut ::std::task::Context<'_>,
            parts: &[::std::io::IoSlice<'_>],
        ) -> ::std::task::Poll<::std::io::Result<usize>> {
            ::std::pin::Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
        }
    };
    (@ is_write_vectored) => {
        fn is_write_vectored(&self) -> bool {
            self.stream.is_write_vectored()
        }
    };
    (@ poll_flush) => {
        fn poll_flush(
            mut self: ::std::pin::Pin<&mut Self>,
            cx: &mut ::std::task::Context<'_>,
        ) -> ::std::task::Poll<::std::io::Result<()>> {
            ::std::pin::Pin::new(&mut self.stream).poll_flush(cx)
        }
    };
    (@ poll_shutdown) => {
        fn poll_shutdown(
            mut self: ::std::pin::Pin<&mut Self>,
            cx: &mut ::std::task::Context<'_>,
        ) -> ::std::task::Poll<::std::io::Result<()>> {
            ::std::pin::Pin::new(&mut self.stream).poll_shutdown(cx)
        }
    };
}

pub(crate) use pass_on;
