/**
 * A helper in its own process, which answers questions one at a time. The attacker and the honest user are helpers, so
 * that neither waits for the other's event loop, and the processor time of each can be measured.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'

type Reply<Answer> = { readonly answer: Answer } | { readonly failure: string }

export class HelperProcess<Question, Answer> implements AsyncDisposable {
  readonly #child: ChildProcess

  private constructor(child: ChildProcess) {
    this.#child = child
  }

  /**
   * `program` is a file of this folder that calls answerQuestions(). Resolves with the helper and its ready message.
   */
  static async start<Question, Answer, Facts>(
    program: string,
  ): Promise<{ readonly helper: HelperProcess<Question, Answer>; readonly facts: Facts }> {
    const child = fork(join(REPOSITORY_ROOT, 'test/asymmetry', program), {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    const [facts] = (await once(child, 'message')) as [Facts]
    return { helper: new HelperProcess(child), facts }
  }

  /** Fails with the helper's error, if the helper ends, or if there is no answer within `limitMs`. */
  async ask(question: Question, limitMs: number): Promise<Answer> {
    const waiting = new AbortController()
    const { signal } = waiting
    const limit = setTimeout(() => waiting.abort(new Error(`no answer within ${limitMs} ms`)), limitMs)
    const onExit = (): void => waiting.abort(new Error('the helper ended'))
    this.#child.once('exit', onExit)
    try {
      this.#child.send(question as object)
      const [reply] = (await once(this.#child, 'message', { signal })) as [Reply<Answer>]
      if ('failure' in reply) throw new Error(reply.failure)
      return reply.answer
    } catch (error) {
      throw signal.aborted ? signal.reason : error
    } finally {
      clearTimeout(limit)
      this.#child.off('exit', onExit)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exited = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await exited
  }
}

/** In the helper: reports that it is ready, then answers until its parent ends. */
export function answerQuestions<Question, Answer>(
  facts: unknown,
  answerOne: (question: Question) => Promise<Answer>,
): void {
  process.on('message', async (question: Question) => {
    try {
      process.send?.({ answer: await answerOne(question) })
    } catch (error) {
      process.send?.({ failure: error instanceof Error ? (error.stack ?? error.message) : String(error) })
    }
  })
  process.once('disconnect', () => process.exit())
  process.send?.(facts)
}
