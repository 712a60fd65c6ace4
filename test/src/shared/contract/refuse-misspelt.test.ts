import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ROUTES } from '../../../../src/gateway/routes/routes.ts'
import { type Endpoint, parametersOf } from '../../../../src/shared/contract/endpoint.ts'
import { EXPORT_API } from '../../../../src/shared/contract/export-api.ts'
import { refuseMisspeltNames } from '../../../../src/shared/contract/refuse-misspelt.ts'
import { TOKEN_API } from '../../../../src/shared/contract/token-api.ts'
import { parseQueryString } from '../../../../src/shared/query/parse-query-string.ts'

function refuse(endpoint: Endpoint, query: string): void {
  const names = parametersOf(endpoint).map(({ name }) => name)
  const takesKnownOnly = endpoint.takesKnownOnly === true
  refuseMisspeltNames(names, parseQueryString(query), { takesKnownOnly })
}

const DOWNLOAD = ROUTES.find(({ path }) => path === '/api/v1/pcap/timerange') as Endpoint

for (const [query, param, says] of [
  ['FilterBpf=udp', 'FilterBpf', /; FilterBPF is$/],
  ['filterbpf=udp', 'filterbpf', /; FilterBPF is$/],
  ['device=lon1', 'device', /; Device is$/],
  ['Devices=lon1', 'Devices', /; Device is$/],
  ['resume=x&offset=0', 'resume', /; Resume is$/],
  ['tsbegin=1', 'tsbegin', /; TSBegin is$/],
  ['FilterIPHost=192.0.2.1', 'FilterIPHost', /its filters are .*FilterBPF/],
  ['filter=udp', 'filter', /did you mean FilterBPF\?/],
  ['FilterUDP=true', 'FilterUDP', /its filters are .*FilterBPF/],
  ['FilterBPF=ip&&port+53', 'port 53', /%26%26/],
  ['FilterBPF=ip&&tcp[13]&1', 'tcp[13]', /%26%26/],
  ['FilterBPF=tcp&&udp', 'udp', /%26%26/],
  ['FilterBPF=ip&&host=1', 'host', /%26%26/],
  ['FilterBPF=ip&(udp', '(udp', /%26%26/],
] as const) {
  test(`a download with ${query} is refused`, () => {
    assert.throws(() => refuse(DOWNLOAD, query), {
      code: 'bad-parameter',
      message: says,
      details: { param, position: undefined },
    })
  })
}

for (const query of ['Colour=red&SnapLen=96&utm_source=x&rand=1', 'Strict=1&Wait=5', 'Start=1&a.b-c=1']) {
  test(`a download with ${query} does not concern the filter`, () => {
    refuse(DOWNLOAD, query)
  })
}

for (const [what, endpoint] of [
  ['tokens', TOKEN_API.issue],
  ['tickets', TOKEN_API.ticket],
  ['exports', EXPORT_API.order],
  ['schedules', EXPORT_API.schedule],
] as const) {
  test(`${what} take no parameter that they do not have`, () => {
    assert.throws(() => refuse(endpoint, 'Colour=red'), {
      code: 'bad-parameter',
      details: { param: 'Colour', position: undefined },
    })
  })
}

test('every row that has parameters refuses its own names in another case, and in the plural', () => {
  let refused = 0
  for (const route of ROUTES) {
    const names = parametersOf(route).map(({ name }) => name)
    for (const name of names) {
      const spelt = [name.toUpperCase(), name.toLowerCase(), inOtherNumber(name)].filter(
        (other) => !names.includes(other),
      )
      for (const other of spelt) {
        assert.throws(() => refuse(route, `${other}=1`), { code: 'bad-parameter' }, `${route.path} ${other}`)
        refused += 1
      }
    }
  }
  assert.ok(refused > 1_000, String(refused))
})

/** The plural of a singular, or the other way round. */
function inOtherNumber(name: string): string {
  if (name.endsWith('ss')) return `${name}es`
  if (name.endsWith('sses')) return name.slice(0, -'es'.length)
  return name.endsWith('s') ? name.slice(0, -1) : `${name}s`
}
