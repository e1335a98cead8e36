//! The shapes of requests, and the requests as runs of equal shapes.

use super::row::push_count;
use smallvec::SmallVec;

/// Requests as arguments, without their quotas and keys.
#[derive(Default)]
pub(super) struct Shapes {
    /// Each once.
    pub(super) known: Vec<Vec<u8>>,
    /// The requests in order.
    pub(super) runs: Vec<u8>,
    pub(super) run_count: usize,
    /// The run at hand.
    open: Option<ShapeRun>,
    scratch: Vec<u8>,
}

/// Requests of one shape in a row.
struct ShapeRun {
    shape: usize,
    /// Its beginning.
    at: usize,
    /// True if it is one request many times.
    repeated: bool,
    count: u16,
    /// The keys of the last request.
    keys: SmallVec<[u16; 4]>,
}

/// The bytes of a run before its keys.
const HEAD: usize = 5;

impl Shapes {
    /// Adds a request by its keys and its shape.
    pub(super) fn add(&mut self, keys: &[u16], push_shape: impl FnOnce(&mut Vec<u8>)) {
        self.scratch.clear();
        push_shape(&mut self.scratch);
        let found = self.known.iter().rposition(|it| *it == self.scratch);
        let shape = found.unwrap_or_else(|| {
            self.known.push(self.scratch.clone());
            self.known.len().saturating_sub(1)
        });
        if !self.extend(shape, keys) {
            self.begin(shape, keys);
        }
    }

    /// Adds to the run at hand, if it can be.
    fn extend(&mut self, shape: usize, keys: &[u16]) -> bool {
        let Some(run) = &mut self.open else {
            return false;
        };
        let same = run.keys.as_slice() == keys;
        // A run of one may still become either.
        let fits = same == run.repeated || run.count == 1;
        if run.shape != shape || !fits || run.count == u16::MAX {
            return false;
        }
        run.repeated = same;
        run.count = run.count.saturating_add(1);
        if !same {
            run.keys = SmallVec::from_slice(keys);
            push_keys(&mut self.runs, keys);
        }
        run.write(&mut self.runs);
        true
    }

    /// Begins a new run of requests of one shape.
    fn begin(&mut self, shape: usize, keys: &[u16]) {
        let run = ShapeRun {
            shape,
            at: self.runs.len(),
            repeated: false,
            count: 1,
            keys: SmallVec::from_slice(keys),
        };
        self.runs.extend_from_slice(&[0; HEAD]);
        push_keys(&mut self.runs, keys);
        run.write(&mut self.runs);
        self.run_count = self.run_count.saturating_add(1);
        self.open = Some(run);
    }
}

impl ShapeRun {
    /// Writes its head to where it belongs.
    fn write(&self, runs: &mut [u8]) {
        let number = u16::try_from(self.shape).unwrap_or(u16::MAX);
        let [s0, s1] = number.saturating_add(1).to_le_bytes();
        let [c0, c1] = self.count.to_le_bytes();
        if let Some(head) = runs.get_mut(self.at..self.at.saturating_add(HEAD)) {
            head.copy_from_slice(&[s0, s1, u8::from(self.repeated), c0, c1]);
        }
    }
}

/// Writes the numbers of a request's keys.
fn push_keys(runs: &mut Vec<u8>, keys: &[u16]) {
    for key in keys {
        push_count(runs, usize::from(*key));
    }
}
