//! Ports reserved for a server across its restarts.

use std::fs::{self, File};
use std::net::TcpListener;
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the ports that the kernel gives to outgoing connections (from 32768), so that a server
/// which is down finds its port free when it comes back.
const FIRST: u16 = 12_000;
const COUNT: u16 = 10_000;
/// The nodes of a cluster talk to each other at this distance.
const BUS: u16 = 10_000;

/// A port that no other process with this kit will take.
#[derive(Debug)]
pub struct Port {
    number: u16,
    /// Locked; the kernel unlocks it when the process ends, however it does.
    _lock: File,
}

impl Port {
    /// Leases a port that is free, and whose cluster bus port is free.
    pub fn lease() -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let locks = std::env::temp_dir().join("tidegate-test-ports");
        fs::create_dir_all(&locks).expect("the folder for temporary files can be written");
        // Processes start at different offsets, so that they seldom try the same port.
        let begin = (process::id() % 199) * 50;
        for _ in 0..COUNT {
            let step = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
            let offset = (begin + step) % u32::from(COUNT);
            let number = FIRST + u16::try_from(offset).expect("less than COUNT");
            let Ok(lock) = File::create(locks.join(number.to_string())) else {
                continue;
            };
            if lock.try_lock().is_ok() && is_free(number) && is_free(number + BUS) {
                return Self {
                    number,
                    _lock: lock,
                };
            }
        }
        panic!("all ports from {FIRST} on are in use")
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}
