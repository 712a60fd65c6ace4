// A reporter of node:test: a line of JSON for each failure, of which run-tests.mjs makes its second run, and {} at the end.

/** @param {AsyncIterable<{ type: string, data: any }>} events */
// biome-ignore lint/style/noDefaultExport: node:test takes reporters as default exports.
export default async function* failures(events) {
  for await (const { type, data } of events) {
    // The last one, of all files: a run that was killed has none.
    if (type === 'test:summary' && data.file === undefined) yield '{}\n'
    if (type !== 'test:fail') continue
    const { error } = data.details
    // A suite fails because of its tests, which come first.
    const text = error.cause?.message ?? error.message
    yield `${JSON.stringify({ file: data.file, test: data.name, message: String(text).split('\n')[0] })}\n`
  }
}
