//! Clients, lists and plans.

use anyhow::Context as _;
use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use tidegate::plan::PlanDocument;
use tidegate::{Limiter, ProcessEnvironment, Request};

/// The number of projects, which all send requests at the same rate.
pub(crate) const PROJECTS: usize = 100_000;

/// The number of their workspaces, and of the plans.
const WORKSPACES: usize = 10_000;
const PLANS: usize = 5;

/// The number of requests before the order repeats.
const ORDER_LEN: usize = 1 << 20;

/// Requests between two reads of the clock.
const CHUNK: usize = 256;

/// The length of an id: that of an `ObjectId` in hexadecimal digits.
pub(crate) const ID_BYTES: usize = 24;

/// The kind of an id, so that no two are equal.
pub(crate) const ASKING: u64 = 1;
pub(crate) const BLOCKED: u64 = 2;
pub(crate) const STRANGERS: u64 = 3;

/// Returns a pseudo-random number, the same for the same arguments (`SplitMix64`).
pub(crate) fn drawn(seed: u64, nth: usize) -> u64 {
    let mut bits = (seed << 40)
        .wrapping_add(nth as u64)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// Returns a pseudo-random number below `count`.
pub(crate) fn one_of(count: usize, seed: u64, nth: usize) -> usize {
    usize::try_from(drawn(seed, nth) % count as u64).unwrap_or(0)
}

/// Returns the ids of `whose`, concatenated.
pub(crate) fn ids(whose: u64, count: usize) -> String {
    let mut text = String::with_capacity(count * ID_BYTES);
    for nth in 0..count {
        let digits = drawn(whose, nth);
        write!(text, "{digits:016x}{:08x}", (whose << 28) | nth as u64)
            .expect("writing to a string");
    }
    text
}

/// Returns the id with this number.
#[inline]
pub(crate) fn id(ids: &str, nth: usize) -> &str {
    ids.get(nth * ID_BYTES..(nth + 1) * ID_BYTES)
        .unwrap_or_default()
}

/// Returns a listed address, which no client has. One in fifty is IPv6.
pub(crate) fn listed_address(nth: usize) -> IpAddr {
    let bits = drawn(BLOCKED, nth);
    if nth.is_multiple_of(50) {
        let low = u128::from(bits) << 64;
        return Ipv6Addr::from((0x2001_0db8_u128 << 96) | (low & ((1 << 96) - 1))).into();
    }
    let bits = u32::try_from(bits >> 32).unwrap_or(0);
    Ipv4Addr::from(bits % (90 << 24) + (10 << 24)).into()
}

/// Returns an unlisted address. One in ten is IPv6.
pub(crate) fn strange_address(nth: usize) -> IpAddr {
    let bits = drawn(STRANGERS, nth);
    if nth.is_multiple_of(10) {
        let low = u128::from(bits) << 48;
        return Ipv6Addr::from((0x2a02_u128 << 112) | low).into();
    }
    let bits = u32::try_from(bits >> 32).unwrap_or(0);
    Ipv4Addr::from(bits % (90 << 24) + (110 << 24)).into()
}

/// Returns addresses as the lines of a file: one in a hundred is a network of IPv4, of three
/// lengths, or of IPv6.
pub(crate) fn address_lines(count: usize) -> String {
    let mut text = String::new();
    for nth in 0..count {
        let prefix = match (listed_address(nth), nth % 1_000) {
            (IpAddr::V6(_), 500) => "/48",
            (IpAddr::V4(_), 101 | 201 | 301 | 401 | 601 | 701 | 801) => "/24",
            (IpAddr::V4(_), 901) => "/20",
            (IpAddr::V4(_), 1) if nth.is_multiple_of(7) => "/16",
            _ => "",
        };
        writeln!(text, "{}{prefix}", listed_address(nth)).expect("writing to a string");
    }
    text
}

/// Returns ids as the lines of a file.
pub(crate) fn id_lines(ids: &str) -> String {
    let count = ids.len() / ID_BYTES;
    (0..count).fold(String::new(), |text, nth| text + id(ids, nth) + "\n")
}

/// Returns the plans of this many projects: some workspaces and some projects have individual
/// rates.
pub(crate) fn document(count: usize) -> PlanDocument {
    let ids = ids(ASKING, count);
    let mut document = PlanDocument::default();
    for nth in 0..PLANS {
        let amount = format!("{}000000", nth + 1);
        document.plan(
            &format!("plan-{nth}"),
            &[("amount", &amount), ("period", "3600")],
        );
    }
    for nth in 0..WORKSPACES {
        let plan = format!("plan-{}", nth % PLANS);
        let own = format!("{}00000", 100 + nth / 100);
        let fields = [("plan", plan.as_str()), ("amount", own.as_str())];
        let told = if nth % 100 == 0 { 2 } else { 1 };
        document.group(&format!("workspace-{nth}"), &fields[..told]);
    }
    for nth in 0..count {
        let group = format!("workspace-{}", one_of(WORKSPACES, 9, nth));
        let own = format!("{}000000", 10 + nth % 50);
        let fields = [("group", group.as_str()), ("amount", own.as_str())];
        let told = if nth % 20 == 0 { 2 } else { 1 };
        document.subject(id(&ids, nth), &fields[..told]);
    }
    document
}

/// Returns a limiter with a configuration that names files.
pub(crate) fn limiter(yaml: &str) -> anyhow::Result<Limiter> {
    let builder = Limiter::builder().environment(ProcessEnvironment::new());
    Ok(builder.yaml(yaml)?.build()?)
}

/// A temporary folder, removed when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let name = format!("tidegate-bench-guards-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).with_context(|| format!("making {}", path.display()))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file; returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.0.join(name);
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// Clients, in the order of their requests.
pub(crate) struct RequestSequence {
    ids: String,
    addresses: Vec<IpAddr>,
    order: Vec<u32>,
    projects: usize,
    next: usize,
}

impl RequestSequence {
    /// Creates it with the first projects.
    pub(crate) fn new(projects: usize) -> Self {
        let drawn = |nth| u32::try_from(one_of(projects, 7, nth)).unwrap_or(0);
        Self {
            ids: ids(ASKING, projects),
            addresses: (0..1 << 12).map(strange_address).collect(),
            order: (0..ORDER_LEN).map(drawn).collect(),
            projects,
            next: 0,
        }
    }

    /// Decides for every project once, so that all have buckets. Returns true if all passed.
    pub(crate) fn fill(&self, limiter: &Limiter) -> bool {
        (0..self.projects).all(|nth| self.one(limiter, nth, nth))
    }

    /// Decides for some of them; returns how many passed.
    pub(crate) fn some(&mut self, limiter: &Limiter) -> usize {
        let from = self.next;
        self.next = (from + CHUNK) % ORDER_LEN;
        let chunk = self.order.get(from..from + CHUNK).unwrap_or_default();
        let visited = chunk.iter().zip(from..);
        visited
            .filter(|(project, nth)| self.one(limiter, **project as usize, *nth))
            .count()
    }

    /// Decides for the next one.
    #[inline]
    pub(crate) fn next(&mut self, limiter: &Limiter) -> bool {
        let nth = self.next;
        self.next = (nth + 1) % ORDER_LEN;
        let project = self.order.get(nth).copied().unwrap_or(0);
        self.one(limiter, project as usize, nth)
    }

    #[inline]
    fn one(&self, limiter: &Limiter, project: usize, nth: usize) -> bool {
        let attributes = [("project", id(&self.ids, project))];
        let address = self.addresses.get(nth % self.addresses.len()).copied();
        let mut request = Request::new().attributes(&attributes);
        request.ip = address;
        let decision = limiter.check_now(&request);
        black_box(&decision)
            .as_ref()
            .is_ok_and(|it| it.is_allowed() && !it.is_unlimited())
    }
}
