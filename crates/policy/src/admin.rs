//! Credentials and roles of administrators, and the audit log of their changes.

use crate::text::Sha256;

/// The administration of a server (`admin`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admin {
    /// Administrators that authenticate with a token.
    pub tokens: Vec<AdminCredential>,
    /// Administrators that authenticate with the certificate of their connection.
    pub certificates: Vec<AdminCredential>,
    /// The audit trail of changes, in addition to the log.
    pub audit: Audit,
}

/// An administrator, identified by the hash of a token or of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminCredential {
    /// The administrator's name in logs.
    pub name: String,
    /// The administrator's permissions.
    pub role: AdminRole,
    /// The hash of the token or of the certificate.
    pub hash: Sha256,
}

/// The permissions of an administrator. Each role includes the roles before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AdminRole {
    /// May read everything.
    Read,
    /// May turn limits off and on, reset buckets, ban addresses, and reload.
    Operate,
    /// May change everything that can be changed.
    Admin,
}

impl AdminRole {
    /// Every role with its name in the configuration.
    pub const ALL: [(&'static str, Self); 3] = [
        ("read", Self::Read),
        ("operate", Self::Operate),
        ("admin", Self::Admin),
    ];

    /// Returns the role's name in the configuration.
    pub fn as_str(self) -> &'static str {
        let mut all = Self::ALL.iter();
        all.find(|(_, role)| *role == self)
            .map_or("", |(word, _)| word)
    }
}

/// The audit trail of changes, in addition to the log (`admin.audit`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// A file that receives one line of JSON per change.
    pub file: Option<String>,
    /// The key of a stream in the store's Redis that receives the changes.
    pub stream: Option<String>,
    /// The approximate number of changes that the stream keeps.
    pub max: u64,
}

impl Default for Audit {
    fn default() -> Self {
        Self {
            file: None,
            stream: None,
            max: 10_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_includes_the_permissions_of_the_lower_ones() {
        assert!(AdminRole::Read < AdminRole::Operate && AdminRole::Operate < AdminRole::Admin);
        assert_eq!(AdminRole::Operate.as_str(), "operate");
    }
}
