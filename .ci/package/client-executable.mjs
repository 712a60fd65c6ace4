// The client as one executable: Node.js with the commands that ask a gateway in it.
import { chmodSync, cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { build } from 'vite'
import { fail, ROOT, run } from '../setup/console.mjs'
import { executableDocument } from './bill-of-materials.mjs'
import { ARCHITECTURES } from './debian-facts.mjs'
import { withNote } from './elf-note.mjs'
import { normalizeTree } from './normal-tree.mjs'
import { runModules } from './npm-modules.mjs'

const MAIN = 'client.cjs'
const BLOB = 'client.blob'
/** Where Node.js finds a program in itself, and the text whose last digit is 1 if it should look for one. */
const NOTE = 'NODE_SEA_BLOB'
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2:0'

/**
 * Makes capfleet_VERSION_linux_ARCHITECTURE.tar.gz in `out`, with a bill of materials: the same for the same commit.
 * `work` is an empty folder.
 */
export async function buildClientExecutable({ work, out, version, architecture, epochS, isFast }) {
  const file = `capfleet_${version}_linux_${architecture}`
  const tree = join(work, file)
  const licenses = join(tree, 'licenses')
  mkdirSync(licenses, { recursive: true })
  const nodeName = `node-linux-${ARCHITECTURES[architecture].node}`
  const nodeFolder = runModules(ARCHITECTURES[architecture].node, join(work, 'fetched')).get(
    `node_modules/${nodeName}`,
  )
  const loaded = await bundle(work, version)
  for (const name of loaded) keepLicense(join(ROOT, 'node_modules', name), join(licenses, name))
  keepLicense(nodeFolder, join(licenses, nodeName))
  cpSync(join(ROOT, 'LICENSE'), join(tree, 'LICENSE'))
  writeFileSync(join(tree, 'capfleet'), executable(work, readFileSync(join(nodeFolder, 'bin/node'))))
  chmodSync(join(tree, 'capfleet'), 0o755)
  const document = executableDocument({ file, version, epochS, modules: licenses })
  writeFileSync(join(out, `${file}.tar.gz.cdx.json`), `${JSON.stringify(document, null, 2)}\n`)
  normalizeTree(tree, epochS)
  const owner = ['--owner=0', '--group=0', '--numeric-owner']
  const tar = ['--format=ustar', '--sort=name', ...owner, '-cf', `${file}.tar`, file]
  // Level 9 takes three times as long as 6, and makes half a percent less.
  const packed =
    run('tar', tar, { cwd: work }) && run('gzip', [isFast ? '-1n' : '-6n', `${file}.tar`], { cwd: work })
  if (!packed || !run('mv', [join(work, `${file}.tar.gz`), out])) fail(`${file} was not made; see above`)
}

/** All modules of the client in one file of CommonJS, which is all that can be embedded. Returns the npm packages in it. */
async function bundle(work, version) {
  const { output } = await build({
    root: ROOT,
    configFile: false,
    logLevel: 'error',
    publicDir: false,
    // The paths of modules become comments: the same ones where node_modules is a link.
    resolve: { preserveSymlinks: true },
    plugins: [withoutPackageFile(version)],
    ssr: { noExternal: true },
    build: {
      ssr: 'src/client/command/standalone.ts',
      outDir: work,
      emptyOutDir: false,
      target: 'node24',
      minify: false,
      rolldownOptions: { output: { format: 'cjs', codeSplitting: false, entryFileNames: MAIN } },
    },
  })
  const modules = join(ROOT, 'node_modules/')
  const inPackages = output[0].moduleIds.filter((id) => id.startsWith(modules))
  return new Set(inPackages.map((id) => /^(@[^/]+\/)?[^/]+/.exec(relative(modules, id))[0]))
}

/** The executable has no package.json beside it. */
function withoutPackageFile(version) {
  return {
    name: 'version',
    load: (id) =>
      id.endsWith('/src/shared/base/product-version.ts')
        ? `export const productVersion = () => ${JSON.stringify(version)}`
        : undefined,
  }
}

function keepLicense(from, to) {
  mkdirSync(to, { recursive: true })
  for (const file of ['package.json', ...globSync('{LICENSE,LICENCE,NOTICE}*', { cwd: from })])
    cpSync(join(from, file), join(to, file), { dereference: true })
}

/** Node.js, with what it should run in a note. */
function executable(work, node) {
  const settings = {
    main: MAIN,
    output: BLOB,
    disableExperimentalSEAWarning: true,
    // As in src/capfleet; no variable of the environment changes them.
    execArgv: ['--max-semi-space-size=16'],
    execArgvExtension: 'none',
  }
  writeFileSync(join(work, 'sea.json'), JSON.stringify(settings))
  // The names are relative, because they become part of the bytes.
  if (!run(join(ROOT, 'node_modules/.bin/node'), ['--experimental-sea-config', 'sea.json'], { cwd: work }))
    fail('Node.js could not pack the client; its message is above')
  const at = node.indexOf(FUSE)
  if (at < 0 || node.includes(FUSE, at + 1)) fail('this Node.js cannot contain a program')
  node.write('1', at + FUSE.length - 1)
  return withNote(node, NOTE, readFileSync(join(work, BLOB)))
}
