//! The pool of command handlers: a `ractor` factory whose workers run one process at a time. Owns its queue's
//! order and bounds; refuses to restart itself, which is the supervisor's part.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use ractor::{
    Actor, ActorCell, ActorProcessingErr, ActorRef, SpawnErr,
    factory::{
        self, DiscardHandler, DiscardMode, DiscardReason, DiscardSettings, FactoryArguments, FactoryMessage,
        JobOptions, Worker, WorkerId, queues::Queue, routing::QueuerRouting,
    },
};

use super::job::{Class, Job};
use crate::{
    handler::command::CommandRunner,
    model::{Conclusion, Ended},
    telemetry::{Shed, ShedReason, ShedWhere},
};

/// What the factory tells jobs apart by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    number: u64,
    class: Class,
}

/// The factory's actor.
pub(crate) type Factory = ActorRef<FactoryMessage<Key, Job>>;

/// Bounds of the pool.
#[derive(Debug, Clone)]
pub(crate) struct CommandPoolSettings {
    /// How many processes run at once.
    pub(crate) concurrency: usize,
    /// How many invocations may wait.
    pub(crate) queue: usize,
    /// How long one may wait.
    pub(crate) queue_deadline: Duration,
}

/// The pool as others see it: a place to put jobs.
#[derive(Debug)]
pub(crate) struct CommandPool {
    factory: ArcSwapOption<Factory>,
    settings: CommandPoolSettings,
    runner: Arc<CommandRunner>,
    number: AtomicU64,
}

impl CommandPool {
    /// A pool without workers yet.
    pub(crate) fn new(settings: CommandPoolSettings, runner: CommandRunner) -> Self {
        Self {
            factory: ArcSwapOption::empty(),
            settings,
            runner: Arc::new(runner),
            number: AtomicU64::new(0),
        }
    }

    /// Starts the workers under a supervisor and takes jobs from then on.
    ///
    /// Returns an error if an actor cannot be started.
    pub(crate) async fn start(&self, supervisor: ActorCell) -> Result<Factory, SpawnErr> {
        let runner = Arc::clone(&self.runner);
        let arguments = FactoryArguments::builder()
            .worker_builder(Box::new(factory::worker_builder(move |_| {
                (CommandWorker(Arc::clone(&runner)), ())
            })))
            .num_initial_workers(self.settings.concurrency)
            .router(QueuerRouting::default())
            .queue(JobQueue::default())
            .discard_handler(Arc::new(ShedJobs))
            .discard_settings(DiscardSettings::Static {
                limit: self.settings.queue,
                mode: DiscardMode::Oldest,
            })
            .build();
        let definition =
            factory::Factory::<Key, Job, (), CommandWorker, QueuerRouting<Key, Job>, JobQueue>::default();
        let (factory, _) = Actor::spawn_linked(None, definition, arguments, supervisor).await?;
        self.factory.store(Some(Arc::new(factory.clone())));
        Ok(factory)
    }

    /// The factory that takes the jobs now.
    #[cfg(test)]
    pub(crate) fn factory(&self) -> Option<Factory> {
        self.factory.load_full().map(|factory| Factory::clone(&factory))
    }

    /// Takes no jobs until it is started again.
    pub(crate) fn stop(&self) {
        self.factory.store(None);
    }

    /// Hands a job over. It always concludes: it is run, shed, or reported as lost.
    pub(crate) fn submit(&self, job: Job) {
        let Some(factory) = self.factory.load_full() else {
            Shed { at: ShedWhere::Pool, reason: ShedReason::Shutdown }.emit();
            return job.reply.send(Conclusion::not_run(Ended::Shed, "the command pool is down"));
        };
        let key = Key { number: self.number.fetch_add(1, Ordering::Relaxed), class: job.class };
        let options = JobOptions::new(Some(self.settings.queue_deadline));
        let job = factory::Job::with_options(key, job, options);
        // A failed send drops the job, and its port then reports the loss.
        drop(factory.cast(FactoryMessage::Dispatch(job)));
    }
}

/// Runs one process at a time.
#[derive(Debug)]
struct CommandWorker(Arc<CommandRunner>);

impl Worker for CommandWorker {
    type Key = Key;
    type Message = Job;
    type Arguments = ();
    type State = ();

    async fn pre_start(
        &self,
        _: WorkerId,
        _: &ActorRef<FactoryMessage<Key, Job>>,
        (): (),
    ) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        _: WorkerId,
        _: &ActorRef<FactoryMessage<Key, Job>>,
        factory::Job { key, msg: job, .. }: factory::Job<Key, Job>,
        (): &mut (),
    ) -> Result<Key, ActorProcessingErr> {
        let conclusion = self.0.run(&job.invocation, &job.cancel).await;
        job.reply.send(conclusion);
        Ok(key)
    }
}

/// Jobs that wait for a worker: interceptors before lifecycle jobs, each in order of arrival.
#[derive(Default)]
struct JobQueue {
    interceptors: VecDeque<factory::Job<Key, Job>>,
    lifecycle: VecDeque<factory::Job<Key, Job>>,
}

impl Queue<Key, Job> for JobQueue {
    fn len(&self) -> usize {
        self.interceptors.len() + self.lifecycle.len()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn pop_front(&mut self) -> Option<factory::Job<Key, Job>> {
        self.interceptors.pop_front().or_else(|| self.lifecycle.pop_front())
    }

    /// What goes when the queue is too long: a lifecycle job, or else the interceptor that came last, since
    /// those before it have waited longer for the same place.
    fn discard_oldest(&mut self) -> Option<factory::Job<Key, Job>> {
        self.lifecycle.pop_front().or_else(|| self.interceptors.pop_back())
    }

    fn peek(&self) -> Option<&factory::Job<Key, Job>> {
        self.interceptors.front().or_else(|| self.lifecycle.front())
    }

    fn push_back(&mut self, job: factory::Job<Key, Job>) {
        match job.key.class {
            Class::Interceptor => self.interceptors.push_back(job),
            Class::Lifecycle => self.lifecycle.push_back(job),
        }
    }

    fn remove_expired_items(&mut self, handler: &Option<Arc<dyn DiscardHandler<Key, Job>>>) -> usize {
        let before = self.len();
        for queue in [&mut self.interceptors, &mut self.lifecycle] {
            queue.retain_mut(|job| {
                let expired = job.is_expired() || job.msg.cancel.is_cancelled();
                if let Some(handler) = handler.as_ref().filter(|_| expired) {
                    handler.discard(DiscardReason::TtlExpired, job);
                }
                !expired
            });
        }
        before - self.len()
    }
}

/// Concludes the jobs that the factory turns away.
struct ShedJobs;

impl DiscardHandler<Key, Job> for ShedJobs {
    fn discard(&self, reason: DiscardReason, job: &mut factory::Job<Key, Job>) {
        // It leaves the queue together with those that waited too long, but nothing was turned away.
        if job.msg.cancel.is_cancelled() {
            let message = "nobody waits for the outcome any more";
            return job.msg.reply.deliver(Conclusion::not_run(Ended::Cancelled, message));
        }
        let (reason, message) = match reason {
            DiscardReason::TtlExpired => {
                (ShedReason::Deadline, "it waited too long for a place in the command pool")
            }
            DiscardReason::Shutdown => (ShedReason::Shutdown, "the command pool is shutting down"),
            DiscardReason::Loadshed | DiscardReason::RateLimited => {
                (ShedReason::Full, "the queue of the command pool is full")
            }
        };
        Shed { at: ShedWhere::Pool, reason }.emit();
        job.msg.reply.deliver(Conclusion::not_run(Ended::Shed, message));
    }
}
