/**
 * Texts that leave the device name files relative to the store: where it is on the machine concerns only the operator.
 */
import type { Middleware } from 'koa'
import { CapfleetError } from '../../src/shared/base/error.ts'
import type { Log } from '../../src/shared/base/log.ts'
import type { RequestState } from '../../src/shared/http/http-app.ts'

/** The text with paths of the store's files made relative to the store. `storePath` is absolute. */
export function withoutStorePath(text: string, storePath: string): string {
  return text.replaceAll(new RegExp(`${RegExp.escape(storePath)}(?:/|(?![^\\s/'":;,)]))`, 'g'), (found) =>
    found.endsWith('/') ? '' : '(its path is in the log)',
  )
}

/** Errors of requests do not reveal where the store is; the log contains them unchanged. */
export function hideStorePath(storePath: string, log: Log): Middleware<RequestState> {
  return async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      if (!(error instanceof CapfleetError)) throw error
      const message = withoutStorePath(error.message, storePath)
      if (message === error.message) throw error
      log.warn('http.error-with-path', {
        requestId: ctx.state.requestId,
        code: error.code,
        message: error.message,
      })
      throw new CapfleetError(error.code, message, { ...error.details, cause: error })
    }
  }
}
