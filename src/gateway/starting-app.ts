/**
 * What a program answers before it can work, while it waits for Redis: it lives, and is not ready. Probes must not end
 * a program for an outage that its end does not mend.
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
  // The program counts its requests when it works.
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
