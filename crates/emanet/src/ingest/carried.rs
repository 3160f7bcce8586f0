//! Work that is carried through even if whoever waits for it goes away.

use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::runtime::Handle;

type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Work that goes on in a task of its own once this is dropped. While somebody waits it needs none.
pub(super) struct CarriedThrough<T: Send + 'static>(Option<Work<T>>);

impl<T: Send + 'static> CarriedThrough<T> {
    pub(super) fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self(Some(Box::pin(work)))
    }
}

impl<T: Send + 'static> Future for CarriedThrough<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        // Taken out, so that work that panics is not carried on with.
        let Some(mut work) = self.0.take() else {
            return Poll::Pending;
        };
        let outcome = work.as_mut().poll(cx);
        if outcome.is_pending() {
            self.0 = Some(work);
        }
        outcome
    }
}

impl<T: Send + 'static> Drop for CarriedThrough<T> {
    fn drop(&mut self) {
        if let (Some(work), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(work);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::sync::oneshot;
    use tokio::time::timeout;

    #[tokio::test]
    async fn who_waits_gets_the_outcome() {
        assert_eq!(CarriedThrough::new(async { 7 }).await, 7);
    }

    #[tokio::test(start_paused = true)]
    async fn it_goes_on_when_nobody_waits_any_more() {
        let (go, gone) = oneshot::channel::<()>();
        let (done, outcome) = oneshot::channel();
        let work = CarriedThrough::new(async move {
            gone.await.unwrap();
            done.send("through").unwrap();
        });
        assert!(timeout(Duration::from_secs(1), work).await.is_err());
        go.send(()).unwrap();
        assert_eq!(outcome.await, Ok("through"));
    }

    #[tokio::test]
    async fn work_that_panicked_is_not_carried_on_with() {
        let waiting = tokio::spawn(CarriedThrough::new(async { panic!("as a test asked for") }));
        assert!(waiting.await.unwrap_err().is_panic());
    }
}
