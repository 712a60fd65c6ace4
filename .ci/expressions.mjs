// The regular expressions of the programs: where they are, and how their running time grows with the length of the
// text.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { check } from 'recheck'
import ts from './setup/compiler-interface.mjs'
import { ROOT } from './setup/console.mjs'

/** The verdict on an expression must not depend on how busy the machine is. */
const LIMITS = { timeout: 600_000, randomSeed: 1 }

/** The source files of the programs, without their tests. */
export function programFiles() {
  const args = ['ls-files', '--cached', '--others', '--exclude-standard', '*.ts', '*.tsx', '*.mjs']
  const paths = execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).split('\n')
  return paths.filter((path) => path !== '' && !path.startsWith('test/'))
}

/**
 * The regular expressions in a file: literals as written, and calls of RegExp, whose expression is only known at run
 * time. Each with its places ("path:line").
 */
export function expressionsIn(files, read = (path) => readFileSync(join(ROOT, path), 'utf8')) {
  const literals = new Map()
  const composed = new Map()
  for (const path of files) {
    const source = ts.createSourceFile(path, read(path), ts.ScriptTarget.Latest, true)
    const add = (found, node) => {
      const line = source.getLineAndCharacterOfPosition(node.getStart()).line + 1
      const text = node.getText()
      found.set(text, [...(found.get(text) ?? []), `${path}:${line}`])
    }
    const look = (node) => {
      if (ts.isRegularExpressionLiteral(node)) add(literals, node)
      const isCall = ts.isNewExpression(node) || ts.isCallExpression(node)
      if (isCall && node.expression.getText() === 'RegExp') add(composed, node)
      ts.forEachChild(node, look)
    }
    look(source)
  }
  return { literals, composed }
}

/**
 * How the running time of an expression (a literal) grows with the length of the worst text: "linear", or in words
 * such as "2nd degree polynomial", or "unknown" if it cannot be determined.
 */
export async function growthOf(literal) {
  const end = literal.lastIndexOf('/')
  const { status, complexity } = await check(literal.slice(1, end), literal.slice(end + 1), LIMITS)
  if (status === 'safe') return 'linear'
  return status === 'vulnerable' ? complexity.summary.replace(' (fuzz)', '') : 'unknown'
}
