/** The lines of a body as they arrive. */
export async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  for (;;) {
    const { value, done } = await reader.read()
    if (done) return
    const texts = (rest + decoder.decode(value, { stream: true })).split('\n')
    rest = texts.pop() ?? ''
    yield* texts
  }
}
