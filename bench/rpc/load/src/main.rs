//! Calls Envoy's rate limit service on the bare `h2` crate, or a server that speaks the Redis
//! protocol, from one thread: as fast as it replies (with this many concurrent calls on each
//! connection), or at a fixed rate, regardless of replies.
//!
//! At a fixed rate a call's time starts when it was due, so that the calls delayed by a stalled
//! server count.

mod call;
mod resp;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use clap::Parser;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::{LocalSet, yield_now};

#[derive(Clone, Parser)]
#[command(about)]
struct Args {
    #[arg(long)]
    port: u16,
    #[arg(long, default_value = call::RLS)]
    path: String,
    /// The message, in hexadecimal; its last eight bytes `U` (0x55) are replaced by a number each time
    #[arg(long)]
    message: String,
    /// The message is a whole command of the Redis protocol
    #[arg(long)]
    resp: bool,
    #[arg(long, default_value_t = 10)]
    connections: usize,
    /// Calls at a time on each connection
    #[arg(long, default_value_t = 10)]
    streams: usize,
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// So many calls, instead of so many seconds
    #[arg(long)]
    calls: Option<u64>,
    /// Calls a second, whatever is answered
    #[arg(long)]
    rate: Option<f64>,
    /// Between calls at a rate, let others have the core: a Redis that must answer meanwhile
    #[arg(long)]
    gives_way: bool,
    #[arg(long, default_value_t = 10_000)]
    keys: u64,
}

/// The results.
#[derive(Default)]
struct LoadOutcome {
    begun: u64,
    failed: u64,
    micros: Vec<u32>,
    first: Option<Bytes>,
    last: Option<Bytes>,
    /// The message of the first failure.
    why: Option<String>,
}

/// Calls on one connection.
#[derive(Clone)]
enum Caller {
    Grpc(Rc<call::Caller>),
    Resp(Rc<resp::Caller>),
}

impl Caller {
    async fn connect(args: &Args, message: &[u8]) -> Result<Self> {
        Ok(if args.resp {
            Self::Resp(Rc::new(resp::Caller::connect(args.port, message).await?))
        } else {
            let caller = call::Caller::connect(args.port, &args.path, message).await?;
            Self::Grpc(Rc::new(caller))
        })
    }

    async fn call(&self, key: u64) -> Result<Bytes> {
        match self {
            Self::Grpc(caller) => caller.call(key).await,
            Self::Resp(caller) => caller.call(key).await,
        }
    }
}

type SharedResult = Rc<RefCell<LoadOutcome>>;

fn main() -> Result<()> {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    LocalSet::new().block_on(&runtime, run(args))
}

async fn run(args: Args) -> Result<()> {
    let message = unhex(&args.message).context("--message is not hexadecimal")?;
    let mut callers = Vec::new();
    for _ in 0..args.connections {
        callers.push(Caller::connect(&args, &message).await?);
    }
    let found = SharedResult::default();
    let begin = Instant::now();
    match args.rate {
        Some(rate) => at_a_rate(&args, &callers, rate, &found).await,
        None => as_it_answers(&args, &callers, &found).await,
    }
    let elapsed = begin.elapsed().as_secs_f64();
    let mut found = found.borrow_mut();
    found.micros.sort_unstable();
    ensure!(!found.micros.is_empty(), "nothing was answered");
    let at = |share: f64| {
        let last = found.micros.len() - 1;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a place in a list"
        )]
        let place = (last as f64 * share) as usize;
        f64::from(found.micros[place]) / 1_000.0
    };
    let report = serde_json::json!({
        "requests": found.micros.len(),
        "requests_per_s": found.micros.len() as f64 / elapsed,
        "failed": found.failed,
        "why": found.why,
        "p50_ms": at(0.5),
        "p99_ms": at(0.99),
        "p999_ms": at(0.999),
        "first": hex(found.first.as_deref().unwrap_or_default()),
        "last": hex(found.last.as_deref().unwrap_or_default()),
    });
    #[expect(clippy::print_stdout, reason = "this is what it is for")]
    {
        println!("{report}");
    }
    Ok(())
}

/// Sends the next call of each stream as soon as the last has its response.
async fn as_it_answers(args: &Args, callers: &[Caller], found: &SharedResult) {
    let until = Instant::now() + Duration::from_secs_f64(args.seconds);
    let mut tasks = Vec::new();
    for (number, caller) in callers.iter().enumerate() {
        for stream in 0..args.streams {
            let (caller, found) = (caller.clone(), Rc::clone(found));
            let (calls, keys) = (args.calls, args.keys);
            tasks.push(tokio::task::spawn_local(async move {
                let mut draw = Draw::new(number * 1_000 + stream);
                loop {
                    let is_enough = match calls {
                        Some(calls) => found.borrow().begun >= calls,
                        None => Instant::now() >= until,
                    };
                    if is_enough {
                        return;
                    }
                    found.borrow_mut().begun += 1;
                    one(&caller, draw.below(keys), Instant::now(), &found).await;
                }
            }));
        }
    }
    for task in tasks {
        task.await.ok();
    }
}

/// Sends calls when they are due, on one connection after the other.
async fn at_a_rate(args: &Args, callers: &[Caller], rate: f64, found: &SharedResult) {
    let begin = Instant::now();
    let end = begin + Duration::from_secs_f64(args.seconds);
    let mut draw = Draw::new(1);
    let mut due = begin;
    let mut tasks = Vec::new();
    for caller in callers.iter().cycle() {
        while due > Instant::now() {
            yield_now().await;
            if args.gives_way {
                std::thread::yield_now();
            }
        }
        if due >= end {
            break;
        }
        let (caller, found, key, at) =
            (caller.clone(), Rc::clone(found), draw.below(args.keys), due);
        tasks.push(tokio::task::spawn_local(async move {
            one(&caller, key, at, &found).await;
        }));
        due += Duration::from_secs_f64(1.0 / rate);
    }
    for task in tasks {
        task.await.ok();
    }
}

async fn one(caller: &Caller, key: u64, due: Instant, found: &SharedResult) {
    let answer = caller.call(key).await;
    let micros = u32::try_from(due.elapsed().as_micros()).unwrap_or(u32::MAX);
    let mut found = found.borrow_mut();
    found.micros.push(micros);
    match answer {
        Ok(answer) => {
            found.first.get_or_insert_with(|| answer.clone());
            found.last = Some(answer);
        }
        Err(error) => {
            found.failed += 1;
            found.why.get_or_insert_with(|| format!("{error:#}"));
        }
    }
}

/// Keys, all with the same frequency.
struct Draw(u64);

impl Draw {
    fn new(seed: usize) -> Self {
        Self((seed as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    digits.collect::<Vec<_>>().concat()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pairs = (0..text.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok())
        .collect()
}
