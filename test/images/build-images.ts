// Builds the images of config/Dockerfile, and images for the programs that run beside them on the real node, into
// .tools/images: an archive and a bill of materials for each. `npm run test:kubernetes` runs it first; only what has
// changed is built again.
//
//   node test/images/build-images.ts
//
// If the base images cannot be fetched, stand-ins with the same names are built: Debian 12 from its own archive, with
// the Node.js of package.json and the npm of this machine; Debian's Redis instead of Valkey.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import {
  CAPFLEET_IMAGES,
  IMAGE_FOLDER,
  imageTag,
  NODE_BASE,
  REDIS_IMAGE,
} from '../support/images/image-names.ts'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'

/** Files that Debian's slim images leave out. */
const SLIM = ['doc', 'info', 'linda', 'lintian', 'locale', 'man'].map(
  (name) => `path-exclude=/usr/share/${name}/*`,
)
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt'

function run(command: string, args: readonly string[]): void {
  execFileSync(command, args, { cwd: REPOSITORY_ROOT, stdio: ['ignore', 2, 2] })
}

function output(command: string, args: readonly string[]): string {
  return execFileSync(command, args, {
    cwd: REPOSITORY_ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 2],
  }).trim()
}

function exists(image: string): boolean {
  return output('buildah', ['images', '--format', '{{.Name}}:{{.Tag}}']).split('\n').includes(image)
}

/** A new image of the files that `fill` puts into a working container. */
function makeImage(name: string, from: string, fill: (container: string) => void): void {
  const container = output('buildah', ['from', '--pull-never', from])
  try {
    fill(container)
    run('buildah', ['commit', '--quiet', container, name])
  } finally {
    run('buildah', ['rm', container])
  }
}

function makeNodeBase(): void {
  const debian = join(tmpdir(), `capfleet-debian-${process.pid}.tar`)
  const options = ['--quiet', '--variant=minbase', ...SLIM.map((line) => `--dpkgopt=${line}`)]
  run('mmdebstrap', [...options, 'bookworm', debian])
  const npm = dirname(
    dirname(realpathSync(output('sh', ['-c', 'PATH=/usr/local/bin:/usr/bin command -v npm']))),
  )
  const node = realpathSync(join(REPOSITORY_ROOT, 'node_modules/.bin/node'))
  makeImage(NODE_BASE, 'scratch', (container) => {
    run('buildah', ['add', '--quiet', container, debian, '/'])
    rmSync(debian)
    run('buildah', ['copy', '--quiet', container, node, '/usr/local/bin/node'])
    run('buildah', ['copy', '--quiet', container, npm, '/usr/local/lib/node_modules/npm'])
    // The CA certificates of this machine, which may be the only ones that are valid for the registry here.
    run('buildah', ['copy', '--quiet', container, CERTIFICATES, CERTIFICATES])
    run('buildah', [
      'config',
      '--env',
      `NODE_EXTRA_CA_CERTS=${CERTIFICATES}`,
      '--env',
      `PATH=${PATH_OF_DEBIAN}`,
      container,
    ])
    const link = ['ln', '-s', '../lib/node_modules/npm/bin/npm-cli.js', '/usr/local/bin/npm']
    run('buildah', ['run', '--isolation', 'chroot', container, ...link])
  })
}

const PATH_OF_DEBIAN = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

function makeRedis(): void {
  // A folder owned by the package's user would hide the configuration that the chart mounts there.
  const install =
    'apt-get -qq update && apt-get -qq install -y --no-install-recommends redis-server > /dev/null && rm -rf /etc/redis'
  makeImage(REDIS_IMAGE, NODE_BASE, (container) =>
    run('buildah', ['run', '--isolation', 'chroot', container, 'sh', '-c', install]),
  )
}

function makePause(): void {
  makeImage(imageTag('pause'), 'scratch', (container) => {
    run('buildah', ['copy', '--quiet', container, '.tools/pause', '/pause'])
    run('buildah', ['config', '--user', '65535:65535', '--entrypoint', '["/pause"]', container])
  })
}

function buildTarget(target: string): void {
  const options = ['--isolation', 'chroot', '--pull-never', '--layers', '--format', 'docker', '--quiet']
  run('buildah', [
    'bud',
    ...options,
    '-f',
    'config/Dockerfile',
    '--target',
    target,
    '-t',
    imageTag(target),
    '.',
  ])
}

/** Writes the archive of an image and, for our own images, its bill of materials, unless both are up to date. */
function keep(name: string, withSbom: boolean): void {
  const stamp = join(IMAGE_FOLDER, `${name}.id`)
  const tag = imageTag(name)
  const id = output('buildah', ['inspect', '--type', 'image', '--format', '{{.FromImageID}}', tag])
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === id) return
  const archive = join(IMAGE_FOLDER, `${name}.tar`)
  rmSync(archive, { force: true })
  run('buildah', ['push', '--quiet', tag, `docker-archive:${archive}:${tag}`])
  if (withSbom) {
    const container = output('buildah', ['from', '--pull-never', tag])
    const root = output('buildah', ['mount', container])
    writeFileSync(join(IMAGE_FOLDER, `${name}.cdx.json`), output('node', ['.ci/sbom.mjs', tag, root]))
    run('buildah', ['rm', container])
  }
  writeFileSync(stamp, id)
}

mkdirSync(IMAGE_FOLDER, { recursive: true })
if (!exists(NODE_BASE)) makeNodeBase()
if (!exists(REDIS_IMAGE)) makeRedis()
run('buildah', ['tag', REDIS_IMAGE, imageTag('redis')])
makePause()
for (const name of CAPFLEET_IMAGES) buildTarget(name)
for (const name of ['pause', 'redis']) keep(name, false)
for (const name of CAPFLEET_IMAGES) keep(name, true)
