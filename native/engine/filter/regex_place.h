// What the compile helper says of a regular expression before its database.
#pragma once

namespace capfleet {

/// What matches in a text matches in every longer text that holds it, at the same place; and in a
/// text with several matches the one that ends first is found first.
inline constexpr char kRegexOfAnyPlace = 'p';
/// Nothing is known of longer texts: the pattern has an anchor, say.
inline constexpr char kRegexOfWholeText = 'w';

}  // namespace capfleet
