/**
 * The answers of a program that is still waiting for Redis: it is alive, but not ready. A liveness probe must not
 * restart a program because of an outage that a restart does not fix.
 */
import type { RequestListener } from 'node:http'
import { CapfleetError } from '../shared/base/error.ts'
import type { Log } from '../shared/base/log.ts'
import { Metrics } from '../shared/base/metrics.ts'
import { isInsecure } from '../shared/base/setting-schemas.ts'
import { createHttpApp } from '../shared/http/http-app.ts'

export interface StartingProgram {
  readonly log: Log
  readonly listen: Parameters<typeof isInsecure>[0]
}

const RETRY_AFTER_S = 5

export function startingApp({ log, listen }: StartingProgram): RequestListener {
  // Uses separate metrics: the program counts requests once it is ready.
  const app = createHttpApp({ log, metrics: new Metrics() })
  app.use(async (ctx) => {
    if (ctx.path === '/livez') {
      ctx.body = 'ok\n'
      return
    }
    if (ctx.path !== '/readyz') throw notYet()
    ctx.status = 503
    ctx.body = {
      ready: false,
      draining: false,
      insecure: isInsecure(listen),
      devicesKnown: false,
      schedulerReachable: false,
      clockDistrust: 'redis-silent',
    }
  })
  return app.callback()
}

function notYet(): CapfleetError {
  return new CapfleetError(
    'scheduler-unavailable',
    'the program is starting and waits for Redis; try again',
    {
      retryAfterS: RETRY_AFTER_S,
    },
  )
}
