// The alerts: Prometheus accepts them, each fires only when it should, and a planted mistake is found.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { parse, stringify } from 'yaml'
import { NO_PROMTOOL, promtool } from '../support/helm/promtool.ts'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'
import { tempFolder } from '../support/temp-folder.ts'

const RULES = join(REPOSITORY_ROOT, 'helm/rules')
const TESTS = join(REPOSITORY_ROOT, 'test/helm/rules')
const FILES = readdirSync(RULES)
const IS_LONG = process.env.CAPFLEET_LONG === '1'

interface Rule {
  readonly record?: string
  readonly alert?: string
  expr: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
}

interface RuleFile {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[]
}

interface RuleTest {
  readonly tests: readonly {
    readonly promql_expr_test: readonly {
      readonly expr: string
      readonly exp_samples?: readonly { readonly labels: string }[]
    }[]
  }[]
}

function read<Content>(folder: string, file: string): Content {
  return parse(readFileSync(join(folder, file), 'utf8')) as Content
}

function rulesOf({ groups }: RuleFile): readonly Rule[] {
  return groups.flatMap(({ rules }) => rules)
}

/** The expectations for an alert, wherever a test names it. */
function expectationsOf(file: string, alert: string) {
  const asked = read<RuleTest>(TESTS, file).tests.flatMap((one) => one.promql_expr_test)
  return asked.filter(({ expr }) => new RegExp(/alertname=~?"([^"]*)"/.exec(expr)?.[1] ?? '^$').test(alert))
}

/** The findings of promtool after `change` has been applied to the rules of a file. */
async function testedWith(file: string, change: (rule: Rule) => void) {
  await using folder = await tempFolder()
  const rules = read<RuleFile>(RULES, file)
  for (const rule of rulesOf(rules)) change(rule)
  await writeFile(join(folder.path, 'rules.yaml'), stringify(rules))
  const tests = { ...read<RuleTest>(TESTS, file), rule_files: ['rules.yaml'] }
  await writeFile(join(folder.path, 'tests.yaml'), stringify(tests))
  return promtool(['test', 'rules', join(folder.path, 'tests.yaml')])
}

const RUNBOOK = 'docs/operations/runbook.md'

/** Anchors of the sections of the runbook. */
function runbookAnchors(): readonly string[] {
  const runbook = readFileSync(join(REPOSITORY_ROOT, RUNBOOK), 'utf8')
  return [...runbook.matchAll(/^## (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^a-z0-9 -]/g, '')
      .replaceAll(' ', '-'),
  )
}

const ANCHORS = runbookAnchors()

test('each alert names a section of the runbook that is there', () => {
  const named = FILES.flatMap((file) =>
    rulesOf(read<RuleFile>(RULES, file)).flatMap(({ annotations }) => annotations?.runbook_url ?? []),
  )
  const missing = named.filter((url) => !ANCHORS.includes(url.replace(`${RUNBOOK}#`, '')))
  assert.deepEqual([...new Set(missing)], [])
})

test('each file of rules has a file of tests', () => {
  assert.deepEqual(readdirSync(TESTS), FILES)
})

for (const file of FILES) {
  const rules = rulesOf(read<RuleFile>(RULES, file))
  const alerts = rules.flatMap(({ alert }) => alert ?? [])

  test(`each alert of ${file} says what it is, how bad, and what to do`, () => {
    for (const { alert, labels, annotations = {} } of rules.filter((rule) => rule.alert !== undefined)) {
      assert.match(labels?.severity ?? '', /^(critical|warning)$/, alert)
      assert.deepEqual(Object.keys(annotations), ['summary', 'description', 'runbook_url'], alert)
      assert.match(annotations.runbook_url ?? '', /^docs\/operations\/runbook\.md#[a-z-]+$/, alert)
    }
  })

  test(`each alert of ${file} is tested to fire, with the labels that it uses, and to stay quiet`, () => {
    for (const { alert = '', annotations = {} } of rules.filter((rule) => rule.alert !== undefined)) {
      const expected = expectationsOf(file, alert)
      const firing = expected.flatMap(({ exp_samples: samples = [] }) => samples)
      assert.ok(firing.length > 0, `${alert} fires nowhere`)
      assert.ok(
        expected.some(({ exp_samples: samples }) => samples === undefined),
        `${alert} is quiet nowhere`,
      )
      const told = [
        ...Object.values(annotations)
          .join(' ')
          .matchAll(/\$labels\.(\w+)/g),
      ]
      for (const [, label = ''] of told)
        assert.ok(
          firing.every(({ labels }) => labels.includes(`,${label}="`)),
          `${alert}: ${label}`,
        )
    }
  })

  describe(`promtool on ${file}`, { skip: NO_PROMTOOL }, () => {
    test('takes the rules', () => {
      const { status, said } = promtool(['check', 'rules', '--lint=all', '--lint-fatal', join(RULES, file)])
      assert.equal(status, 0, said)
      assert.match(said, new RegExp(`${rules.length} rules found`))
    })

    test('finds that they do as their tests say', () => {
      const { status, said } = promtool(['test', 'rules', join(TESTS, file)])
      assert.equal(status, 0, said)
    })

    test('finds an alert that never fires, and one that always does', async () => {
      const never = await testedWith(file, (rule) => {
        if (rule.alert !== undefined) rule.expr = `(${rule.expr}) and on () vector(1) > 2`
      })
      assert.notEqual(never.status, 0)
      const always = await testedWith(file, (rule) => {
        if (rule.alert !== undefined) rule.expr = `vector(1)`
      })
      assert.notEqual(always.status, 0)
      for (const alert of alerts) {
        assert.ok(never.said.includes(alert), `${alert} never fired, and nobody saw it`)
        assert.ok(always.said.includes(alert), `${alert} fired always, and nobody saw it`)
      }
    })

    test('finds a recorded series that is wrong', async () => {
      const recorded = rules.filter((rule) => rule.record !== undefined)
      // That each of them is tested, only the night asks.
      for (const { record } of IS_LONG ? recorded : recorded.slice(0, 1)) {
        const wrong = await testedWith(file, (rule) => {
          if (rule.record === record) rule.expr = `(${rule.expr}) * 0 - 1`
        })
        assert.notEqual(wrong.status, 0, record)
      }
    })
  })
}
