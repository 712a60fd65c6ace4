/**
 * How the search of the site orders its results. A reader types a task or pastes an error message, of which a page has
 * some words: one word is enough, and a place with more of them comes first (minisearch multiplies its score by their
 * number). VitePress writes the source of each function into a script of the site, so none may use anything outside of
 * itself.
 */
export const SEARCH_OPTIONS = {
  combineWith: 'OR',
  // A message is in the text of the place that explains it, and in no title.
  boost: { title: 2, titles: 1, text: 1 },
  // "no" is not the start of "now", and "full" is not "fill".
  prefix: (word: string): boolean => word.length > 3,
  fuzzy: (word: string): number | boolean => (word.length > 5 ? 0.2 : false),
  /** Words that are in each text find nothing. */
  processTerm: (word: string): string | null =>
    /^(?:an?|and|are|as|at|be|by|can|do|does|for|from|how|i|if|in|is|it|my|no|not|of|on|or|the|to|up|was|what|when|why|with|you|your)$/i.test(
      word,
    )
      ? null
      : word.toLowerCase(),
} as const
