//! Replies, in the protocol version that a client speaks.

/// The version of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RespVersion {
    /// RESP2, the default.
    #[default]
    Resp2,
    /// RESP3, with maps, booleans and a null type.
    Resp3,
}

impl RespVersion {
    /// Returns its number.
    pub fn number(self) -> i64 {
        match self {
            Self::Resp2 => 2,
            Self::Resp3 => 3,
        }
    }
}

/// Replies that wait to be sent, in order.
#[derive(Debug, Default)]
pub struct Replies {
    /// The version for the replies from here on.
    pub protocol: RespVersion,
    out: Vec<u8>,
}

impl Replies {
    /// Returns an empty buffer for replies in `protocol`.
    pub fn of(protocol: RespVersion) -> Self {
        Self {
            protocol,
            out: Vec::new(),
        }
    }

    /// Returns all bytes written.
    pub fn as_bytes(&self) -> &[u8] {
        &self.out
    }

    /// Returns the number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Returns true if there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Clears the replies after they were sent. Frees capacity beyond `kept` bytes.
    pub fn clear(&mut self, kept: usize) {
        self.out.clear();
        self.out.shrink_to(kept);
    }

    /// Writes `+text`. `text` must not contain line ends.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// Writes `-message`. Parts of it may come from a client and contain line ends: these become blanks.
    pub fn error(&mut self, message: impl AsRef<[u8]>) {
        let mut message = message.as_ref();
        while let [before @ .., b'\r' | b'\n'] = message {
            message = before;
        }
        self.out.push(b'-');
        self.out.extend(message.iter().map(|byte| match byte {
            b'\r' | b'\n' => b' ',
            other => *other,
        }));
        self.end();
    }

    /// Writes `:number`.
    #[inline]
    pub fn integer(&mut self, number: i64) {
        // Most are a yes, a no, or no wait.
        if let digit @ 0..=9 = number {
            // Lossless: it is one digit.
            let digit = u8::try_from(digit).unwrap_or_default();
            return self
                .out
                .extend_from_slice(&[b':', b'0' + digit, b'\r', b'\n']);
        }
        if number == -1 {
            return self.out.extend_from_slice(b":-1\r\n");
        }
        self.out.push(b':');
        self.out
            .extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        self.end();
    }

    /// Writes a list of integers.
    #[inline]
    pub fn integers<const N: usize>(&mut self, numbers: [i64; N]) {
        self.array(N);
        for number in numbers {
            self.integer(number);
        }
    }

    /// Writes an [`integer`](Self::integer); a number that is too large becomes the maximum.
    pub fn natural(&mut self, number: u64) {
        self.integer(i64::try_from(number).unwrap_or(i64::MAX));
    }

    /// Writes `$length` and the bytes.
    pub fn bulk(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.head(b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.end();
    }

    /// Writes a text of several lines for people.
    pub fn verbatim(&mut self, text: &str) {
        if self.protocol == RespVersion::Resp2 {
            return self.bulk(text);
        }
        self.head(b'=', text.len().saturating_add(4));
        self.out.extend_from_slice(b"txt:");
        self.out.extend_from_slice(text.as_bytes());
        self.end();
    }

    /// Writes a null.
    pub fn null(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            RespVersion::Resp2 => b"$-1\r\n",
            RespVersion::Resp3 => b"_\r\n",
        });
    }

    /// Writes a boolean; 1 or 0 in RESP2.
    pub fn boolean(&mut self, is_true: bool) {
        match (self.protocol, is_true) {
            (RespVersion::Resp2, _) => self.integer(is_true.into()),
            (RespVersion::Resp3, true) => self.line(b'#', b"t"),
            (RespVersion::Resp3, false) => self.line(b'#', b"f"),
        }
    }

    /// Begins a list that contains the next `len` replies.
    #[inline]
    pub fn array(&mut self, len: usize) {
        self.head(b'*', len);
    }

    /// Begins a set: a list without duplicates and without order.
    pub fn set(&mut self, len: usize) {
        match self.protocol {
            RespVersion::Resp2 => self.head(b'*', len),
            RespVersion::Resp3 => self.head(b'~', len),
        }
    }

    /// Begins a map that contains the next `pairs` pairs of replies; in RESP2, a list of twice as many
    /// replies.
    pub fn map(&mut self, pairs: usize) {
        match self.protocol {
            RespVersion::Resp2 => self.head(b'*', pairs.saturating_mul(2)),
            RespVersion::Resp3 => self.head(b'%', pairs),
        }
    }

    /// Appends replies that were written elsewhere.
    pub fn append(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    #[inline]
    fn head(&mut self, kind: u8, len: usize) {
        self.out.push(kind);
        self.out
            .extend_from_slice(itoa::Buffer::new().format(len).as_bytes());
        self.end();
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.out.push(kind);
        self.out.extend_from_slice(text);
        self.end();
    }

    #[inline]
    fn end(&mut self) {
        self.out.extend_from_slice(b"\r\n");
    }
}
