/**
 * The text of the file with the gateways that a user has logged in to. Loaded only by commands that read or write it:
 * the parsers take longer to load than most commands take.
 */
import { stringify } from 'yaml'
import { z } from 'zod'
import { parseConfig } from '../../../shared/base/config-file.ts'

const text = z.string().min(1)
/** Absolute paths of PEM files. */
const tls = { ca: text.optional(), cert: text.optional(), key: text.optional() }
const place = { url: z.url({ protocol: /^https?$/ }), ...tls }

const CONTEXT = z.union([
  z.strictObject({ ...place, user: text, password: text }),
  z.strictObject({ ...place, token: text }),
])

const FILE = z.strictObject({
  /** The default context. */
  current: text.optional(),
  contexts: z.record(z.string(), CONTEXT).default({}),
})

export type ClientContext = z.infer<typeof CONTEXT>
export type ClientContexts = z.infer<typeof FILE>

/** `path` is for messages. Fails with bad-config. */
export function parseContexts(content: string, path: string): ClientContexts {
  return parseConfig(content, path, FILE)
}

export function formatContexts(contexts: ClientContexts): string {
  return stringify(contexts)
}
