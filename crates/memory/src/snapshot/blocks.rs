//! The form of a snapshot: a header, blocks, and a running checksum after each of them.
//!
//! ```text
//! header  "tgsnap\r\n"  version (4)  length of the note (4)  time (8)  time of sets (8)
//!         seed (8)  shared seed (8)  probe of the hash (8)  note  checksum (8)
//! block   kind (1)  length (4)  entries  checksum (8)                       any number of them
//! end     kind 0 (1)  length 8 (4)  number of entries (8)  checksum (8)
//! ```
//!
//! Numbers are little-endian. A checksum is of all bytes before it, so a block that is missing, or out of
//! place, is noticed like one that was changed. Nothing follows the end.

use super::checksum::Crc64;
use super::{NOTE_BYTES_MAX, SnapshotError, SnapshotTotals};
use crate::seeds::KeptSeeds;
use std::io::{self, ErrorKind, Read, Write};

/// First bytes of every snapshot. The line end shows if something has treated the file as text.
const MAGIC: [u8; 8] = *b"tgsnap\r\n";

/// Version of the format.
pub(super) const VERSION: u32 = 1;

/// Length of a block at which it is written.
pub(super) const BLOCK_BYTES: usize = 64 << 10;

/// Maximum length of a block that is read. A writer adds a few entries to a block before it looks at its
/// length, and the largest is a log of 160 KB.
const BLOCK_BYTES_MAX: usize = 16 << 20;

/// Length of the header without its note.
const HEAD_BYTES: usize = 56;

/// The kinds of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    /// The end.
    End,
    /// States that fit a word.
    Words,
    /// States that do not.
    Records,
    /// Overflow buckets.
    Overflow,
    /// A part of a set.
    Set,
    /// A part of a map of counts.
    Counts,
}

impl BlockKind {
    /// All kinds, in the order of their numbers.
    const ALL: [Self; 6] = [
        Self::End,
        Self::Words,
        Self::Records,
        Self::Overflow,
        Self::Set,
        Self::Counts,
    ];

    /// Returns the number of the kind.
    fn number(self) -> u8 {
        let kinds = (0..).zip(Self::ALL);
        let mut found = kinds.filter(|(_, kind)| *kind == self);
        found.next().map_or(0, |(number, _)| number)
    }
}

/// The facts in the header.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct SnapshotHead {
    /// The store's time, in microseconds.
    pub(super) written_us: u64,
    /// The time of sets and counts, in microseconds.
    pub(super) wall_us: u64,
    pub(super) seeds: KeptSeeds,
    /// See [`HashSeeds::probe`](crate::seeds::HashSeeds::probe).
    pub(super) probe: u64,
    /// Bytes of the caller.
    pub(super) note: Vec<u8>,
}

/// Writes a snapshot.
pub(super) struct BlockWriter<'a> {
    out: &'a mut dyn Write,
    crc: Crc64,
    /// Checksum of the blocks alone, without the checksums between them.
    digest: Crc64,
    totals: SnapshotTotals,
    entries: u64,
}

impl<'a> BlockWriter<'a> {
    /// Writes the header.
    pub(super) fn begin(out: &'a mut dyn Write, head: &SnapshotHead) -> io::Result<Self> {
        let length = u32::try_from(head.note.len()).ok();
        let Some(length) = length.filter(|_| head.note.len() <= NOTE_BYTES_MAX) else {
            return Err(io::Error::new(
                ErrorKind::InvalidInput,
                "the note is too long",
            ));
        };
        let mut writer = Self {
            out,
            crc: Crc64::EMPTY,
            digest: Crc64::EMPTY,
            totals: SnapshotTotals::default(),
            entries: 0,
        };
        let mut bytes = Vec::with_capacity(HEAD_BYTES);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        for number in [
            head.written_us,
            head.wall_us,
            head.seeds.seed,
            head.seeds.shared,
            head.probe,
        ] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(&head.note);
        writer.put(&bytes)?;
        Ok(writer)
    }

    /// Writes a block of so many entries, and empties `entries`. Does nothing if there are none.
    pub(super) fn block(
        &mut self,
        kind: BlockKind,
        (entries, count): (&mut Vec<u8>, u64),
    ) -> io::Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        let length = u32::try_from(entries.len()).map_err(io::Error::other)?;
        let mut head = vec![kind.number()];
        head.extend(length.to_le_bytes());
        self.digest.add(&head);
        self.digest.add(entries);
        self.crc.add(&head);
        self.out.write_all(&head)?;
        self.totals.bytes = self.totals.bytes.saturating_add(5);
        self.put(entries)?;
        self.entries = self.entries.saturating_add(count);
        if matches!(
            kind,
            BlockKind::Words | BlockKind::Records | BlockKind::Overflow
        ) {
            self.totals.buckets = self.totals.buckets.saturating_add(count);
        }
        entries.clear();
        Ok(())
    }

    /// Writes the end.
    pub(super) fn end(mut self) -> io::Result<SnapshotTotals> {
        let mut count = self.entries.to_le_bytes().to_vec();
        self.block(BlockKind::End, (&mut count, 0))?;
        self.totals.digest = self.digest.value();
        Ok(self.totals)
    }

    /// Writes bytes, and the checksum of all bytes so far.
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.crc.add(bytes);
        self.out.write_all(bytes)?;
        let crc = self.crc.value().to_le_bytes();
        self.crc.add(&crc);
        self.out.write_all(&crc)?;
        let count = bytes.len().saturating_add(crc.len());
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.totals.bytes = self.totals.bytes.saturating_add(count);
        Ok(())
    }
}

/// Reads a snapshot.
pub(super) struct BlockReader<'a> {
    input: &'a mut dyn Read,
    crc: Crc64,
}

impl<'a> BlockReader<'a> {
    /// Begins to read. Nothing is read before [`head`](Self::head).
    pub(super) fn new(input: &'a mut dyn Read) -> Self {
        Self {
            input,
            crc: Crc64::EMPTY,
        }
    }

    /// Reads the header.
    pub(super) fn head(&mut self) -> Result<SnapshotHead, SnapshotError> {
        let magic: [u8; 8] = match self.array() {
            Err(SnapshotError::Damaged { .. }) => return Err(SnapshotError::Foreign),
            magic => magic?,
        };
        if magic != MAGIC {
            return Err(SnapshotError::Foreign);
        }
        let version = u32::from_le_bytes(self.array()?);
        if version != VERSION {
            return Err(SnapshotError::Version { found: version });
        }
        let length = u32::from_le_bytes(self.array()?);
        let mut numbers = [0; 5];
        for number in &mut numbers {
            *number = u64::from_le_bytes(self.array()?);
        }
        let mut note = Vec::new();
        self.bytes(length, NOTE_BYTES_MAX, &mut note)?;
        self.check()?;
        let [written_us, wall_us, seed, shared, probe] = numbers;
        Ok(SnapshotHead {
            written_us,
            wall_us,
            seeds: KeptSeeds { seed, shared },
            probe,
            note,
        })
    }

    /// Reads the entries of the next block.
    pub(super) fn block(&mut self, entries: &mut Vec<u8>) -> Result<BlockKind, SnapshotError> {
        let [number] = self.array()?;
        let length = u32::from_le_bytes(self.array()?);
        self.bytes(length, BLOCK_BYTES_MAX, entries)?;
        self.check()?;
        let kind = BlockKind::ALL.get(usize::from(number)).copied();
        let kind = kind.ok_or(SnapshotError::Damaged {
            what: "a block of an unknown kind",
        })?;
        if kind == BlockKind::End {
            self.nothing_follows()?;
        }
        Ok(kind)
    }

    /// Fails if there are more bytes.
    fn nothing_follows(&mut self) -> Result<(), SnapshotError> {
        let mut more = Vec::new();
        let read = self.input.take(1).read_to_end(&mut more);
        match read.map_err(SnapshotError::Io)? {
            0 => Ok(()),
            _ => Err(SnapshotError::Damaged {
                what: "bytes follow its end",
            }),
        }
    }

    /// Reads so many bytes, at most `max`, in place of those in `bytes`.
    fn bytes(&mut self, length: u32, max: usize, bytes: &mut Vec<u8>) -> Result<(), SnapshotError> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > max {
            let what = "a length is out of range";
            return Err(SnapshotError::Damaged { what });
        }
        bytes.clear();
        // Takes memory as bytes arrive: a wrong length takes none.
        let count = u64::try_from(length).unwrap_or(u64::MAX);
        let read = self.input.take(count).read_to_end(bytes);
        if read.map_err(SnapshotError::Io)? < length {
            return Err(TRUNCATED);
        }
        self.crc.add(bytes);
        Ok(())
    }

    /// Reads a number of bytes.
    fn array<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes).map_err(read_error)?;
        self.crc.add(&bytes);
        Ok(bytes)
    }

    /// Reads a checksum and compares it.
    fn check(&mut self) -> Result<(), SnapshotError> {
        let expected = self.crc.value();
        if u64::from_le_bytes(self.array()?) == expected {
            return Ok(());
        }
        let what = "a checksum does not match";
        Err(SnapshotError::Damaged { what })
    }
}

const TRUNCATED: SnapshotError = SnapshotError::Damaged {
    what: "it is truncated",
};

fn read_error(error: io::Error) -> SnapshotError {
    if error.kind() == ErrorKind::UnexpectedEof {
        TRUNCATED
    } else {
        SnapshotError::Io(error)
    }
}
