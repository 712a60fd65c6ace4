// Rules and dashboards: a program reports each metric that they query, with the labels that they use.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { parse } from 'yaml'
import { ERROR_KINDS } from '../../src/shared/base/error.ts'
import { metricTexts } from '../support/documents/metric-texts.ts'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'

const HELM = join(REPOSITORY_ROOT, 'helm')
/** Labels that Prometheus adds to each series, and metrics that it reports about each target. */
const LABELS_OF_PROMETHEUS = ['job', 'instance', 'le']
const METRICS_OF_PROMETHEUS = ['up', 'ALERTS']

/** Label names of each metric, each with the values that were seen. */
type Told = ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>>

function toldBy(texts: readonly string[]): Told {
  const told = new Map<string, Map<string, Set<string>>>()
  const metricOf = (name: string) => {
    const labels = told.get(name) ?? new Map<string, Set<string>>()
    told.set(name, labels)
    return labels
  }
  for (const line of texts.join('\n').split('\n')) {
    // A metric without any series still has a type.
    const [, declared] = /^# TYPE (\w+) /.exec(line) ?? []
    if (declared !== undefined) metricOf(declared)
    const [, name, labels = ''] = /^(\w+)(?:\{(.*)\})? \S+$/.exec(line) ?? []
    if (name === undefined) continue
    const ofMetric = metricOf(name)
    for (const [, label = '', value = ''] of labels.matchAll(/(\w+)="([^"]*)"/g))
      ofMetric.set(label, (ofMetric.get(label) ?? new Set()).add(value))
  }
  return told
}

interface Asked {
  /** Where the query is: a file and a panel or rule. */
  readonly where: string
  readonly expr: string
}

/** Names of alerts and recorded series. Programs do not report them, but they may be queried. */
function rules(): { readonly asked: readonly Asked[]; readonly recorded: ReadonlySet<string> } {
  const files = readdirSync(join(HELM, 'rules')).map((file) =>
    readFileSync(join(HELM, 'rules', file), 'utf8'),
  )
  const all = files.flatMap((text) => (parse(text) as RuleFile).groups.flatMap((group) => group.rules))
  return {
    asked: all.map(({ alert, record, expr }) => ({ where: alert ?? record ?? '', expr })),
    recorded: new Set(all.flatMap(({ record }) => record ?? [])),
  }
}

interface RuleFile {
  readonly groups: readonly {
    readonly rules: readonly { readonly alert?: string; readonly record?: string; readonly expr: string }[]
  }[]
}

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly datasource?: { readonly type: string; readonly uid: string }
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string } }
  readonly targets?: readonly { readonly expr: string; readonly refId: string }[]
}

interface Dashboard {
  readonly uid: string
  readonly title: string
  readonly schemaVersion: number
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly type: string; readonly definition?: string }[]
  }
  readonly panels: readonly Panel[]
}

const dashboards = readdirSync(join(HELM, 'dashboards')).map((file) => ({
  file,
  board: JSON.parse(readFileSync(join(HELM, 'dashboards', file), 'utf8')) as Dashboard,
}))

function askedBy({ file, board }: (typeof dashboards)[number]): readonly Asked[] {
  const variables = board.templating.list.flatMap(({ definition }) => definition ?? [])
  return [
    ...board.panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ expr }) => ({ where: `${file}: ${title}`, expr })),
    ),
    ...variables.map((expr) => ({ where: `${file}: variables`, expr })),
  ]
}

const FUNCTION_OR_WORD = /^(by|on|and|or|unless|without|group_left|group_right|bool|offset|e\d+|[\d.]+\w*)$/

/** What is wrong with the names of metrics and labels in a Prometheus query. */
function mistakesIn({ where, expr }: Asked, told: Told, recorded: ReadonlySet<string>): readonly string[] {
  const plain = expr.replaceAll(/\[[^\]]*\]/g, '')
  const groups = [...plain.matchAll(/\b(?:by|on|group_left|without)\s*\(([^)]*)\)/g)].flatMap(
    ([, list = '']) => list.split(','),
  )
  const grouped = [
    ...groups,
    ...[...plain.matchAll(/label_values\([^,]*,([^)]*)\)/g)].map(([, label = '']) => label),
  ]
    .map((label) => label.trim())
    .filter((label) => label !== '')
  const bare = plain
    .replaceAll(/\b(?:by|on|group_left|without)\s*\([^)]*\)/g, '')
    .replaceAll(/(label_values\([^,]*),[^)]*\)/g, '$1)')
  const selectors = [...bare.matchAll(/([a-zA-Z_][\w:]*)\b(\{[^}]*\})?(?!\s*\()/g)].filter(
    ([, name = '']) => !FUNCTION_OR_WORD.test(name),
  )
  const names = selectors.map(([, name = '']) => name)
  const known = new Set([
    ...LABELS_OF_PROMETHEUS,
    ...names.flatMap((name) => [...(told.get(name)?.keys() ?? [])]),
  ])
  // Recorded series have their own labels, which the tests of the rules check.
  const usesRecorded = names.some((name) => recorded.has(name))
  return [
    ...(names.length === 0 ? ['asks for no metric'] : []),
    ...selectors.flatMap(([, name = '', matchers = '']) => wrongSelector(name, matchers, told, recorded)),
    ...grouped.filter((label) => !known.has(label) && !usesRecorded).map((label) => `no label ${label}`),
  ].map((mistake) => `${where}: ${mistake}`)
}

function wrongSelector(
  name: string,
  matchers: string,
  told: Told,
  recorded: ReadonlySet<string>,
): readonly string[] {
  if (METRICS_OF_PROMETHEUS.includes(name) || recorded.has(name)) return []
  const labels = told.get(name)
  if (labels === undefined) return [`no metric ${name}`]
  return [...matchers.matchAll(/(\w+)(=~?|!=|!~)"([^"]*)"/g)].flatMap(([, label = '', how, value = '']) => {
    if (LABELS_OF_PROMETHEUS.includes(label)) return []
    const values = labels.get(label)
    if (values === undefined) return [`${name} has no label ${label}`]
    // Rare labels that no program reported here; they are named as in other metrics.
    const isElsewhere = [...told.values()].some((others) => others.get(label)?.has(value))
    const isKnown = how !== '=' || isElsewhere || (label === 'code' && value in ERROR_KINDS)
    return isKnown ? [] : [`${name} has no ${label} ${value}`]
  })
}

let told: Told
const { asked, recorded } = rules()
before(async () => {
  const { gateway, worker, appliance } = await metricTexts()
  told = toldBy([gateway, worker, appliance])
})

test('rules use metrics that programs export', () => {
  assert.ok(asked.length > 30)
  assert.deepEqual(
    asked.flatMap((one) => mistakesIn(one, told, recorded)),
    [],
  )
})

test('a mistake in a question is found', () => {
  const mistakes = (expr: string) => mistakesIn({ where: 'x', expr }, told, recorded)
  assert.deepEqual(mistakes('sum(rate(capfleet_download_byte_total[5m]))'), [
    'x: no metric capfleet_download_byte_total',
  ])
  assert.deepEqual(mistakes('capfleet_device_up{divice="a"} > 1e9'), [
    'x: capfleet_device_up has no label divice',
  ])
  assert.deepEqual(mistakes('max by (devise) (capfleet_device_up)'), ['x: no label devise'])
  assert.deepEqual(mistakes('capfleet_exports{state="runing"}'), ['x: capfleet_exports has no state runing'])
  assert.deepEqual(mistakes('capfleet_http_problems_total{code="queue-timeouts"}'), [
    'x: capfleet_http_problems_total has no code queue-timeouts',
  ])
  assert.deepEqual(mistakes('vector(0)'), ['x: asks for no metric'])
})

for (const { file, board } of dashboards) {
  describe(file, () => {
    test('uses metrics that programs export', () => {
      const questions = askedBy({ file, board })
      assert.ok(questions.length > 10)
      assert.deepEqual(
        questions.flatMap((one) => mistakesIn(one, told, recorded)),
        [],
      )
    })

    test('is a dashboard whose source of data can be chosen, and whose figures have units', () => {
      assert.match(board.uid, /^capfleet-[a-z]+$/)
      assert.ok(board.schemaVersion >= 36)
      const [first] = board.templating.list
      assert.deepEqual([first?.name, first?.type], ['datasource', 'datasource'])
      const variables = new Set(board.templating.list.map(({ name }) => name))
      for (const { title, type, datasource, fieldConfig, targets = [] } of board.panels) {
        if (type === 'row') continue
        assert.equal(datasource?.uid, `\${datasource}`, title)
        assert.ok(fieldConfig?.defaults.unit, `${title} has a unit`)
        assert.ok(targets.length > 0, title)
        assert.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length, title)
        for (const { expr } of targets)
          for (const [, name = ''] of expr.matchAll(/\$(\w+)/g))
            assert.ok(name.startsWith('__') || variables.has(name), `${title}: $${name}`)
      }
    })

    test('has no panel upon another, and each once', () => {
      assert.equal(new Set(board.panels.map(({ id }) => id)).size, board.panels.length)
      const cells = board.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
        Array.from({ length: w * h }, (_, at) => `${x + (at % w)}/${y + Math.floor(at / w)}`),
      )
      assert.equal(new Set(cells).size, cells.length)
      assert.ok(board.panels.every(({ gridPos: { x, w } }) => x + w <= 24))
    })
  })
}

test('each dashboard has its own id and title', () => {
  for (const member of ['uid', 'title'] as const)
    assert.equal(new Set(dashboards.map(({ board }) => board[member])).size, dashboards.length)
})
