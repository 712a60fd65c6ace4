// The npm package of the client. npm keeps the modes that a checkout happens to have, so its archive is made again.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fail, run } from '../setup/console.mjs'
import { normalizeTree } from './normal-tree.mjs'

/** Makes capfleet-npm-VERSION.tgz in `out`: the chart is capfleet-VERSION.tgz. `work` is an empty folder. */
export function buildNpmArchive({ work, out, epochS }) {
  if (!run('npm', ['pack', '--silent', '--pack-destination', work]))
    fail('npm pack failed; its message is above')
  const name = readdirSync(work).find((one) => one.endsWith('.tgz'))
  const tree = join(work, 'package')
  const unpacked = run('tar', ['-xzf', name], { cwd: work })
  normalizeTree(tree, epochS)
  const owner = ['--owner=0', '--group=0', '--numeric-owner']
  const tar = ['--format=ustar', '--sort=name', ...owner, '-cf', join(work, 'package.tar'), 'package']
  const packed =
    unpacked && run('tar', tar, { cwd: work }) && run('gzip', ['-9n', 'package.tar'], { cwd: work })
  if (!packed || !run('mv', [join(work, 'package.tar.gz'), join(out, name.replace('-', '-npm-'))]))
    fail(`${name} was not made; see above`)
}
