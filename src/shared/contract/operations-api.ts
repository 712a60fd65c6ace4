/** The paths that every program has, for those who operate it. */
import { type Endpoint, json } from './endpoint.ts'
import { READINESS } from './status-answers.ts'

/** What every program reports about itself. */
export const OPERATIONS = {
  alive: {
    method: 'GET',
    path: '/livez',
    scope: 'anyone',
    filtered: 'nothing',
    others: 'nothing',
    group: 'Operation',
    says: 'Whether the program runs.',
    answers: [{ says: 'It runs.', bodies: { 'text/plain': 'text' } }],
    errors: [],
  },
  ready: {
    method: 'GET',
    path: '/readyz',
    scope: 'anyone',
    filtered: 'nothing',
    others: 'nothing',
    group: 'Operation',
    says: 'Whether new requests should be sent to this program. A gateway stays ready while Redis is unavailable.',
    answers: [
      json(READINESS, 'They should.'),
      {
        ...json(
          READINESS,
          'They should not: the program is shutting down, or does not know all devices yet.',
        ),
        status: 503,
      },
    ],
    errors: [],
  },
  metrics: {
    method: 'GET',
    path: '/metrics',
    scope: 'metrics',
    filtered: 'refused',
    others: 'nothing',
    group: 'Operation',
    says: 'Metrics for Prometheus.',
    answers: [{ says: 'Metrics in the text format of Prometheus.', bodies: { 'text/plain': 'text' } }],
    errors: [],
  },
} as const satisfies Record<string, Endpoint>
