// The compile helper's statement about a regular expression, before its database.
#pragma once

namespace capfleet {

/// What matches in a text also matches in every longer text that contains it, at the same place;
/// and in a text with several matches the one that ends first is found first.
inline constexpr char kRegexOfAnyPlace = 'p';
/// Nothing is known about longer texts, for instance because the pattern has an anchor.
inline constexpr char kRegexOfWholeText = 'w';

}  // namespace capfleet
