//! Every field of plan sources.

use crate::config::fields::{optional, required};
use crate::config::sources::shelf::DOCUMENTS;
use crate::config::sources::{
    ENDPOINTS, PASSWORD, PASSWORD_FILE, REDIS_URL, REDIS_URL_FILE, TLS, TOKEN, TOKEN_FILE, USER,
    WRITABLE,
};
use crate::config::table::FieldTable;
use crate::config::table::Shape::{self, Either, Map, Named, Pairs, Text};

/// The fields of a plan source.
pub(in crate::config) static PLANS: FieldTable = FieldTable {
    what: "source of plans",
    fields: &[
        required(
            "name",
            Text("events"),
            "Its name, by which limits ask for it.",
        ),
        required(
            "from",
            Map(&FROM),
            "Where it is: `file`, `http`, `mongodb`, `redis`, `etcd` or `inline`.",
        ),
        optional(
            "refresh",
            Text("30s"),
            "How often it is asked, 100ms to 24h; 30s unless told, or 2s in `redis`, `etcd` and `documents` of MongoDB.",
        ),
        optional(
            "timeout",
            Text("5s"),
            "How long an answer may take, 1ms to 10min; 5s unless told.",
        ),
        optional(
            "unset",
            Text("unlimited"),
            "What a subject has of which no level says how much: `unlimited`, `refuse` or a rate; `unlimited` unless told.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of the origin of a source.
pub(super) static FROM: FieldTable = FieldTable {
    what: "`from`",
    fields: &[
        optional("file", Text("plans.yaml"), "A file in YAML or JSON."),
        optional(
            "http",
            Either(&[Text("https://plans.internal/v1/plans"), Map(&HTTP)]),
            "A URL that answers in JSON or YAML, or a map.",
        ),
        optional(
            "mongodb",
            Map(&MONGODB),
            "Collections of MongoDB; or documents of ours, which can be changed through the admin API.",
        ),
        optional(
            "redis",
            Map(&REDIS),
            "A hash of Redis, which can be changed through the admin API.",
        ),
        optional(
            "etcd",
            Map(&ETCD),
            "Keys of etcd, which can be changed through the admin API.",
        ),
        optional(
            "inline",
            Map(&INLINE),
            "The plans themselves, as part of this configuration.",
        ),
    ],
    exactly_one: &["file", "http", "mongodb", "redis", "etcd", "inline"],
};

/// The fields of plans in the configuration itself.
pub(super) static INLINE: FieldTable = FieldTable {
    what: "`inline`",
    fields: &[
        optional("plans", ENTRIES, "Plans, by their names."),
        optional("groups", ENTRIES, "Groups of subjects, by their names."),
        optional("subjects", ENTRIES, "Subjects, by their names."),
    ],
    exactly_one: &[],
};

/// Entries of a document of plans: each is a rate, or a map with its settings.
const ENTRIES: Shape = Named(&Either(&[Text("100/min"), Pairs]));

/// The fields of a source at a URL.
pub(super) static HTTP: FieldTable = FieldTable {
    what: "`http`",
    fields: &[
        required(
            "url",
            Text("https://plans.internal/v1/plans"),
            "`http://` or `https://`.",
        ),
        TOKEN,
        TOKEN_FILE,
    ],
    exactly_one: &[],
};

/// The fields of a source in `MongoDB`.
pub(super) static MONGODB: FieldTable = FieldTable {
    what: "`mongodb`",
    fields: &[
        optional(
            "url",
            Text("mongodb://127.0.0.1:27017"),
            "Where it is; with a password, better kept in `url_file` or a variable.",
        ),
        optional(
            "url_file",
            Text("/run/secrets/mongodb"),
            "The file that holds the URL.",
        ),
        required("database", Text("hawk"), "The database."),
        optional(
            "plans",
            Text("plans"),
            "The collection of plans; `plans` unless told.",
        ),
        optional(
            "groups",
            Text("workspaces"),
            "The collection of groups; `workspaces` unless told.",
        ),
        optional(
            "subjects",
            Text("projects"),
            "The collection of subjects; `projects` unless told.",
        ),
        optional(
            "settings",
            Text("rateLimitSettings"),
            "The field with the settings, in all three; `rateLimitSettings` unless told.",
        ),
        optional(
            "amount",
            Text("N"),
            "The field of them that says how many; `N` unless told.",
        ),
        optional(
            "period",
            Text("T"),
            "The field of them that says per how many seconds; `T` unless told.",
        ),
        optional(
            "quota",
            Text("quotaSettings"),
            "The field of plans and groups with the settings of the group's quota; none unless told.",
        ),
        optional(
            "plan_of_group",
            Text("tariffPlanId"),
            "The field of a group with the id of its plan; `tariffPlanId` unless told.",
        ),
        optional(
            "group_of_subject",
            Text("workspaceId"),
            "The field of a subject with the id of its group; `workspaceId` unless told.",
        ),
        optional(
            "subject_id",
            Text("_id"),
            "The field that requests know a subject by; `_id` unless told.",
        ),
        optional(
            DOCUMENTS,
            Text("tidegate_plans"),
            "Reads documents of ours in place of these collections: the collection that has them.",
        ),
        WRITABLE,
    ],
    exactly_one: &["url", "url_file"],
};

/// The fields of a hash in Redis.
pub(super) static REDIS: FieldTable = FieldTable {
    what: "`plans.redis`",
    fields: &[
        REDIS_URL,
        REDIS_URL_FILE,
        optional(
            "key",
            Text("tidegate:plans"),
            "The hash; `tidegate:plans` unless told.",
        ),
        WRITABLE,
    ],
    exactly_one: &[],
};

/// The fields of a range of keys in etcd.
pub(super) static ETCD: FieldTable = FieldTable {
    what: "`plans.etcd`",
    fields: &[
        ENDPOINTS,
        optional(
            "prefix",
            Text("/tidegate-plans/"),
            "What its keys begin with; `/tidegate-plans/` unless told.",
        ),
        USER,
        PASSWORD,
        PASSWORD_FILE,
        TLS,
        WRITABLE,
    ],
    exactly_one: &[],
};
