//! A queue of waiting invocations, with the one order and the one shedding policy of all pools.

use std::collections::VecDeque;

use super::job::JobClass;

/// Invocations that wait: interceptors go before lifecycle hooks, each in order of arrival.
#[derive(Debug)]
pub(super) struct WaitQueue<T> {
    interceptors: VecDeque<T>,
    lifecycle: VecDeque<T>,
}

impl<T> Default for WaitQueue<T> {
    fn default() -> Self {
        Self { interceptors: VecDeque::new(), lifecycle: VecDeque::new() }
    }
}

impl<T> WaitQueue<T> {
    pub(super) fn len(&self) -> usize {
        self.interceptors.len() + self.lifecycle.len()
    }

    pub(super) fn push(&mut self, class: JobClass, item: T) {
        match class {
            JobClass::Interceptor => self.interceptors.push_back(item),
            JobClass::Lifecycle => self.lifecycle.push_back(item),
        }
    }

    /// The next to go.
    pub(super) fn peek(&self) -> Option<&T> {
        self.interceptors.front().or_else(|| self.lifecycle.front())
    }

    /// Takes out the next to go.
    pub(super) fn pop(&mut self) -> Option<T> {
        self.interceptors.pop_front().or_else(|| self.lifecycle.pop_front())
    }

    /// Takes out the one to drop when the queue is too long: one that nobody waits for any more, else the oldest
    /// lifecycle hook, else the newest interceptor, since those before it have waited longer for the same permit.
    pub(super) fn shed(&mut self, is_abandoned: impl Fn(&T) -> bool) -> Option<T> {
        for queue in [&mut self.interceptors, &mut self.lifecycle] {
            if let Some(position) = queue.iter().position(&is_abandoned) {
                return queue.remove(position);
            }
        }
        self.lifecycle.pop_front().or_else(|| self.interceptors.pop_back())
    }

    /// Keeps those for which the condition holds.
    pub(super) fn retain_mut(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        self.interceptors.retain_mut(&mut keep);
        self.lifecycle.retain_mut(keep);
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
    fn abandoned_items_are_shed_first_then_the_oldest_lifecycle_hook_then_the_newest_interceptor() {
        let shed = |queue: &mut WaitQueue<u32>| queue.shed(|item| item % 2 == 1);
        assert_eq!(drained(queue(&[10, 11, 12], &[20, 21, 22]), shed), [11, 21, 20, 22, 12, 10]);
    }
}
