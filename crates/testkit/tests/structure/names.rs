//! The names of types: each is a noun of the domain with one meaning.

use syn::{
    Attribute, Ident, ItemEnum, ItemFn, ItemMod, ItemStruct, ItemTrait, ItemType, ItemUnion,
    TraitItemType, visit::Visit,
};

use crate::sources::{SourceFile, is_for_tests};

/// Words that do not say what a value is, such as pronouns, prepositions, adverbs and participles. A name
/// may contain them, but none is a whole name.
const RIDDLES: &[&str] = &[
    "About",
    "Again",
    "Ahead",
    "Alike",
    "Alive",
    "All",
    "Alone",
    "Along",
    "Another",
    "Any",
    "Anything",
    "Apart",
    "Around",
    "Away",
    "Before",
    "Began",
    "Begun",
    "Behind",
    "Below",
    "Beside",
    "Best",
    "Better",
    "Beyond",
    "Both",
    "Brought",
    "By",
    "Chosen",
    "Corrupt",
    "Done",
    "Drawn",
    "Due",
    "Each",
    "Elsewhere",
    "Enough",
    "Every",
    "Everything",
    "Exactly",
    "Few",
    "First",
    "Following",
    "Follows",
    "Foreign",
    "Found",
    "Frequent",
    "Given",
    "Gone",
    "Had",
    "Has",
    "Have",
    "Heard",
    "Held",
    "Here",
    "How",
    "Idle",
    "Ill",
    "Inside",
    "Instead",
    "Kept",
    "Known",
    "Last",
    "Later",
    "Left",
    "Lent",
    "Made",
    "Many",
    "Me",
    "Met",
    "Mine",
    "More",
    "Most",
    "Narrow",
    "Near",
    "Never",
    "Next",
    "Nobody",
    "None",
    "Nothing",
    "Now",
    "Of",
    "Off",
    "Once",
    "One",
    "Only",
    "Other",
    "Others",
    "Our",
    "Out",
    "Outside",
    "Own",
    "Past",
    "Quiet",
    "Raw",
    "Reads",
    "Refers",
    "Said",
    "Same",
    "Secure",
    "Seen",
    "Sent",
    "Serves",
    "Shown",
    "Some",
    "Somebody",
    "Something",
    "Soon",
    "Sound",
    "Spare",
    "Spoken",
    "Steady",
    "Stranger",
    "Such",
    "Taken",
    "Them",
    "Then",
    "There",
    "These",
    "They",
    "Thing",
    "Things",
    "This",
    "Those",
    "Told",
    "Trouble",
    "Under",
    "Unknown",
    "Unread",
    "Unset",
    "Until",
    "Us",
    "Usable",
    "Wants",
    "What",
    "Whatever",
    "When",
    "Where",
    "Whether",
    "Which",
    "Who",
    "Whoever",
    "Whole",
    "Whom",
    "Whose",
    "Why",
    "With",
    "Within",
    "Without",
    "Woken",
    "Written",
];

/// Words in -ed and -ing that are nouns of their own. All others are participles, which do not say what
/// was done to which value.
const NOUNS: &[&str] = &[
    "Ending", "Escaping", "Feed", "Finding", "Framing", "Hashing", "Meaning", "Naming", "Ping",
    "Rounding", "Setting", "Spelling", "Timing", "Wording",
];

/// Names of types in tests that are riddles still. A name that is gone from the tests goes from here; none is
/// added.
pub(crate) const RIDDLES_OF_TESTS: &[&str] = &[];

/// Returns the types that a file defines on its own level or in modules of it.
pub(crate) fn types_of_modules(file: &SourceFile) -> Vec<String> {
    let mut names = TypeNames {
        below_modules: false,
        names: Vec::new(),
    };
    names.visit_file(&file.syntax);
    names.names
}

/// Returns the types that a file defines anywhere: also in functions, and the associated types of traits.
pub(crate) fn types_anywhere(file: &SourceFile) -> Vec<String> {
    let mut names = TypeNames {
        below_modules: true,
        names: Vec::new(),
    };
    names.visit_file(&file.syntax);
    names.names
}

/// Returns true if a name does not say what its values are.
pub(crate) fn is_riddle(name: &str) -> bool {
    let is_one_word = !name.chars().skip(1).any(char::is_uppercase);
    let is_participle = name.ends_with("ed") || name.ends_with("ing");
    RIDDLES.contains(&name) || is_one_word && is_participle && !NOUNS.contains(&name)
}

struct TypeNames {
    /// True if types in functions and traits count.
    below_modules: bool,
    names: Vec<String>,
}

impl TypeNames {
    fn add(&mut self, name: &Ident, attributes: &[Attribute]) {
        if !is_for_tests(attributes) {
            self.names.push(name.to_string());
        }
    }
}

impl<'ast> Visit<'ast> for TypeNames {
    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        self.add(&item.ident, &item.attrs);
    }

    fn visit_item_enum(&mut self, item: &'ast ItemEnum) {
        self.add(&item.ident, &item.attrs);
    }

    fn visit_item_union(&mut self, item: &'ast ItemUnion) {
        self.add(&item.ident, &item.attrs);
    }

    fn visit_item_type(&mut self, item: &'ast ItemType) {
        self.add(&item.ident, &item.attrs);
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        self.add(&item.ident, &item.attrs);
        if self.below_modules {
            syn::visit::visit_item_trait(self, item);
        }
    }

    fn visit_trait_item_type(&mut self, item: &'ast TraitItemType) {
        self.add(&item.ident, &item.attrs);
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_for_tests(&item.attrs) {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if self.below_modules && !is_for_tests(&item.attrs) {
            syn::visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if self.below_modules && !is_for_tests(&item.attrs) {
            syn::visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        if self.below_modules && !is_for_tests(&item.attrs) {
            syn::visit::visit_item_const(self, item);
        }
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        if self.below_modules && !is_for_tests(&item.attrs) {
            syn::visit::visit_item_static(self, item);
        }
    }
}
