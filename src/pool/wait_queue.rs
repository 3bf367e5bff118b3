//! A queue of waiting invocations, with the one order and the one shedding policy of all pools.

use std::collections::VecDeque;

use super::job::JobClass;

/// Invocations that wait, by their classes, each in order of arrival.
#[derive(Debug)]
pub(super) struct WaitQueue<T>([VecDeque<T>; JobClass::NUMBER]);

impl<T> Default for WaitQueue<T> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| VecDeque::new()))
    }
}

impl<T> WaitQueue<T> {
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(VecDeque::len).sum()
    }

    pub(super) fn push(&mut self, class: JobClass, item: T) {
        self.0[class.rank()].push_back(item);
    }

    /// The next to go.
    pub(super) fn peek(&self) -> Option<&T> {
        self.0.iter().find_map(VecDeque::front)
    }

    /// Takes out the next to go.
    pub(super) fn pop(&mut self) -> Option<T> {
        self.0.iter_mut().find_map(VecDeque::pop_front)
    }

    /// Takes out the one to drop when the queue is too long: one that nobody waits for any more, else one for an event of
    /// an anonymous sender; the oldest lifecycle hook, else the newest interceptor, since those before it have waited
    /// longer for the same permit.
    pub(super) fn shed(&mut self, is_abandoned: impl Fn(&T) -> bool) -> Option<T> {
        for queue in &mut self.0 {
            if let Some(position) = queue.iter().position(&is_abandoned) {
                return queue.remove(position);
            }
        }
        let [interceptors, lifecycle, anonymous_interceptors, anonymous_lifecycle] = &mut self.0;
        let anonymous = anonymous_lifecycle.pop_front().or_else(|| anonymous_interceptors.pop_back());
        anonymous.or_else(|| lifecycle.pop_front()).or_else(|| interceptors.pop_back())
    }

    /// Keeps those for which the condition holds.
    pub(super) fn retain_mut(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        for queue in &mut self.0 {
            queue.retain_mut(&mut keep);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue of numbers, of which odd ones are abandoned.
    fn queue(interceptors: &[u32], lifecycle: &[u32]) -> WaitQueue<u32> {
        let mut queue = WaitQueue::default();
        for item in lifecycle {
            queue.push(JobClass::Lifecycle, *item);
        }
        for item in interceptors {
            queue.push(JobClass::Interceptor, *item);
        }
        queue
    }

    fn drained(mut queue: WaitQueue<u32>, next: impl Fn(&mut WaitQueue<u32>) -> Option<u32>) -> Vec<u32> {
        std::iter::from_fn(|| next(&mut queue)).collect()
    }

    #[test]
    fn interceptors_go_before_lifecycle_hooks_in_order_of_arrival() {
        let queue = queue(&[10, 20], &[30, 40]);
        assert_eq!((queue.len(), queue.peek()), (4, Some(&10)));
        assert_eq!(drained(queue, WaitQueue::pop), [10, 20, 30, 40]);
    }

    #[test]
    fn what_anonymous_senders_want_goes_last_and_is_shed_first() {
        let all = || {
            let mut queue = WaitQueue::default();
            for (class, items) in [
                (JobClass::AnonymousLifecycle, [70, 80]),
                (JobClass::AnonymousInterceptor, [50, 60]),
                (JobClass::Lifecycle, [30, 40]),
                (JobClass::Interceptor, [10, 20]),
            ] {
                for item in items {
                    queue.push(class, item);
                }
            }
            queue
        };
        assert_eq!((all().len(), all().peek()), (8, Some(&10)));
        assert_eq!(drained(all(), WaitQueue::pop), [10, 20, 30, 40, 50, 60, 70, 80]);
        assert_eq!(drained(all(), |queue| queue.shed(|_| false)), [70, 80, 60, 50, 30, 40, 20, 10]);
    }

    #[test]
    fn abandoned_items_are_shed_first_then_the_oldest_lifecycle_hook_then_the_newest_interceptor() {
        let shed = |queue: &mut WaitQueue<u32>| queue.shed(|item| item % 2 == 1);
        assert_eq!(drained(queue(&[10, 11, 12], &[20, 21, 22]), shed), [11, 21, 20, 22, 12, 10]);
    }
}
