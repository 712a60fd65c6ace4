/** A capture's full name: safe in paths, headers and addresses as it is. */
export const CAPTURE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

/** CAPTURE_NAME in words, for messages: "<parameter> <rule>". */
export const CAPTURE_NAME_RULE =
  'must be 1 to 128 letters, digits, dots, hyphens or underscores, beginning with a letter or digit'

/** What a capture is started as; the time of the start is added to it. */
export const BASE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
export const BASE_NAME_RULE =
  '1 to 64 letters, digits, dots, hyphens or underscores, beginning with a letter or digit'
