//! Every field of plan sources.

use crate::language::table::FieldTable;
use crate::language::table::Shape::{self, Either, List, Map, Named, Text, Tree, Word};
use crate::language::table::{optional, required};
use crate::language::words::PLAN_FORMAT;
use crate::tables::sources::DOCUMENTS;
use crate::tables::sources::{
    ENDPOINTS, PASSWORD, PASSWORD_FILE, REDIS_URL, REDIS_URL_FILE, TLS, TOKEN, TOKEN_FILE, USER,
    WRITABLE,
};

/// The fields of a plan source.
pub(crate) static PLANS: FieldTable = FieldTable {
    what: "plan source",
    fields: &[
        required(
            "name",
            Text("events"),
            "Source name, used in `rate` of limits; unique.",
        ),
        optional("file", Text("plans.yaml"), "YAML or JSON file."),
        optional(
            "http",
            Either(&[Text("https://plans.internal/v1/plans"), Map(&HTTP)]),
            "URL of a JSON or YAML document, or a map.",
        ),
        optional(
            "mongodb",
            Map(&MONGODB),
            "MongoDB collections; or Tidegate documents, which can be changed through the admin \
             API.",
        ),
        optional(
            "redis",
            Map(&REDIS),
            "Redis hash, which can be changed through the admin API.",
        ),
        optional(
            "etcd",
            Map(&ETCD),
            "etcd keys, which can be changed through the admin API.",
        ),
        optional("inline", Map(&INLINE), "Plans inside this configuration."),
        optional(
            "format",
            Word(&PLAN_FORMAT),
            "Format of a file or of the document at a URL. Default: `tidegate`.",
        ),
        optional(
            "refresh",
            Text("30s"),
            "Refresh interval, 100ms to 24h. Default: 30s; 2s for `redis`, `etcd` and \
             `documents` of MongoDB.",
        ),
        optional(
            "timeout",
            Text("5s"),
            "Response timeout, 1ms to 10min. Default: 5s.",
        ),
        optional(
            "rates",
            List(&Text("tokens")),
            "Names of rates that its plans may set besides `rate`, the rate of requests; up to 16. A limit uses \
             the rate of its `unit`, or the one that it names.",
        ),
        optional(
            "unset",
            Text("unlimited"),
            "Rate of subjects for which no level sets one: `unlimited`, `refuse` or a rate. \
             Default: `unlimited`.",
        ),
    ],
    exactly_one: &["file", "http", "mongodb", "redis", "etcd", "inline"],
};

/// The fields of plans in the configuration itself.
pub(crate) static INLINE: FieldTable = FieldTable {
    what: "`inline`",
    fields: &[
        optional("plans", ENTRIES, "Plans by name."),
        optional("groups", ENTRIES, "Groups of subjects by name."),
        optional("subjects", ENTRIES, "Subjects by name."),
    ],
    exactly_one: &[],
};

/// Entries of a document of plans: each is a rate, or a map with its settings.
const ENTRIES: Shape = Named(&Either(&[Text("100/min"), Tree]));

/// The fields of a source at a URL.
pub(crate) static HTTP: FieldTable = FieldTable {
    what: "`http`",
    fields: &[
        required(
            "url",
            Text("https://plans.internal/v1/plans"),
            "URL, `http://` or `https://`.",
        ),
        TOKEN,
        TOKEN_FILE,
        TLS,
    ],
    exactly_one: &[],
};

/// The fields of a source in `MongoDB`.
pub(crate) static MONGODB: FieldTable = FieldTable {
    what: "`mongodb`",
    fields: &[
        optional(
            "url",
            Text("mongodb://127.0.0.1:27017"),
            "MongoDB URL. If it contains a password, use `url_file` or a variable.",
        ),
        optional(
            "url_file",
            Text("/run/secrets/mongodb"),
            "File that holds the URL.",
        ),
        required("database", Text("limits"), "Database name."),
        optional(
            "plans",
            Text("plans"),
            "Collection of plans. Default: `plans`.",
        ),
        optional(
            "groups",
            Text("groups"),
            "Collection of groups. Default: `groups`.",
        ),
        optional(
            "subjects",
            Text("subjects"),
            "Collection of subjects. Default: `subjects`.",
        ),
        optional(
            "settings",
            Text("settings"),
            "Field with the rate settings, in all three collections. Default: `settings`.",
        ),
        optional(
            "amount",
            Text("amount"),
            "Field of the rate settings with the amount. Default: `amount`.",
        ),
        optional(
            "period",
            Text("period"),
            "Field of the rate settings with the period in seconds. Default: `period`.",
        ),
        optional(
            "quota",
            Text("quota"),
            "Field of plans and groups with the settings of the group's quota. Default: none.",
        ),
        optional(
            "plan_of_group",
            Text("plan"),
            "Field of a group with the id of its plan. Default: `plan`.",
        ),
        optional(
            "group_of_subject",
            Text("group"),
            "Field of a subject with the id of its group. Default: `group`.",
        ),
        optional(
            "subject_id",
            Text("_id"),
            "Field with the subject id that requests send. Default: `_id`.",
        ),
        optional(
            DOCUMENTS,
            Text("tidegate_plans"),
            "Collection of Tidegate documents, read instead of these collections.",
        ),
        WRITABLE,
    ],
    exactly_one: &["url", "url_file"],
};

/// The fields of a hash in Redis.
pub(crate) static REDIS: FieldTable = FieldTable {
    what: "`plans.redis`",
    fields: &[
        REDIS_URL,
        REDIS_URL_FILE,
        optional(
            "key",
            Text("tidegate:plans"),
            "Key of the hash. Default: `tidegate:plans`.",
        ),
        WRITABLE,
    ],
    exactly_one: &[],
};

/// The fields of a range of keys in etcd.
pub(crate) static ETCD: FieldTable = FieldTable {
    what: "`plans.etcd`",
    fields: &[
        ENDPOINTS,
        optional(
            "prefix",
            Text("/tidegate-plans/"),
            "Key prefix. Default: `/tidegate-plans/`.",
        ),
        USER,
        PASSWORD,
        PASSWORD_FILE,
        TLS,
        WRITABLE,
    ],
    exactly_one: &[],
};
