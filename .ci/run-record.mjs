// A reporter of node:test for run-tests.mjs: one line of JSON for each failure and each file that has ended, and {} at
// the end.

/** @param {AsyncIterable<{ type: string, data: any }>} events */
// biome-ignore lint/style/noDefaultExport: node:test takes reporters as default exports.
export default async function* record(events) {
  for await (const { type, data } of events) {
    // The last entry is the summary of the whole run and names no file. A killed run has none.
    if (type === 'test:summary') {
      const { file, duration_ms: tookMs, success } = data
      yield `${JSON.stringify(file === undefined ? {} : { file, tookMs, success })}\n`
    }
    if (type !== 'test:fail') continue
    const { error } = data.details
    // A suite fails because of its tests, which are reported first.
    const text = error.cause?.message ?? error.message
    yield `${JSON.stringify({ file: data.file, test: data.name, message: String(text).split('\n')[0] })}\n`
  }
}
