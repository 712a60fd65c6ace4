// The required Debian packages, and how missing ones are installed.
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fail, ROOT, run, say } from './console.mjs'

export const RUN_PACKAGES = [
  'cmake',
  'g++',
  'make',
  'libpcap-dev',
  'libzstd-dev',
  'libisal-dev',
  'libdeflate-dev',
  'zlib1g-dev',
  'libxxhash-dev',
  'libbz2-dev',
  'liblz4-dev',
  'liblzma-dev',
  // Vectorscan is Hyperscan for other than Intel CPUs, with the same names.
  process.arch === 'x64' ? 'libhyperscan-dev' : 'libvectorscan-dev',
  'redis-server',
  'netbase',
  // Used by the commands that the demo prints.
  'curl',
  'tcpdump',
  'zstd',
]

export const ENGINE_TEST_PACKAGES = ['libgtest-dev']

export const TEST_PACKAGES = [
  ...ENGINE_TEST_PACKAGES,
  'clang-format',
  'tshark',
  'wireshark-common',
  'gzip',
  'pigz',
  'nginx-light',
  'haproxy',
  'wrk',
  'ethtool',
  'iproute2',
  'e2fsprogs',
  'xfsprogs',
  'netsniff-ng',
  'libfaketime',
  'openssl',
  'procps',
  'tzdata',
  'python3-venv',
  'zsh',
  'fish',
  // For systemd-analyze, which checks the units; systemd itself is not run.
  'systemd',
  // The browsers for the page's tests.
  'chromium',
  'chromium-headless-shell',
  // Besides curl, for resuming downloads in tests.
  'wget',
  'aria2',
  'busybox',
  'python3-requests',
  // An empty Debian, into which the packages are installed.
  'mmdebstrap',
]

/** For counting instructions and sampling stacks in `npm run bench -- profile`. */
export const PROFILE_PACKAGES = ['valgrind', 'linux-perf']

/** For building and running images, and a Kubernetes node. */
export const KUBERNETES_PACKAGES = [
  'buildah',
  'podman',
  'runc',
  'containerd',
  'containernetworking-plugins',
  'mmdebstrap',
  'iptables',
  'iproute2',
  'conntrack',
  'openssl',
  'util-linux',
  'python3-venv',
]

/** For generating and running Python and Java clients in `npm run clients`. */
export const CLIENT_PACKAGES = ['python3-venv', 'default-jdk-headless', 'maven']

export const FUZZ_PACKAGES = ['clang-14', 'libclang-rt-14-dev']

function missingPackages(names) {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg-query's own placeholders
  const format = '${Package} ${db:Status-Status}\n'
  const installed = spawnSync('dpkg-query', ['-W', '-f', format, ...names], {
    encoding: 'utf8',
  })
  if (installed.error)
    fail(`this set-up supports only Debian 12 (no dpkg-query); install by hand: ${names.join(' ')}`)
  const present = new Set(
    installed.stdout
      .split('\n')
      .filter((line) => line.endsWith(' installed'))
      .map((line) => line.split(' ')[0]),
  )
  return names.filter((name) => !present.has(name))
}

export function installPackages(names) {
  installOr(fail, names)
}

/**
 * Packages without which a part is skipped: if they cannot be installed, that is reported, and the set-up continues.
 */
export function installWhereAllowed(names, part) {
  installOr((message) => say(`${part} will not run here: ${message}`), names)
}

function installOr(refuse, names) {
  const missing = missingPackages(names)
  if (missing.length === 0) return
  const root = process.getuid() === 0
  if (!root && spawnSync('sudo', ['-n', 'true']).status !== 0) {
    return refuse(
      `Debian packages are missing; run this, then try again:\n  sudo apt-get install -y --no-install-recommends ${missing.join(' ')}`,
    )
  }
  say(`installing Debian packages: ${missing.join(' ')}`)
  const apt = (args) => {
    const command = [
      'env',
      'DEBIAN_FRONTEND=noninteractive',
      'apt-get',
      '-qq',
      '-o',
      'Dpkg::Use-Pty=0',
      ...args,
    ]
    return root ? run(command[0], command.slice(1)) : run('sudo', ['-n', ...command])
  }
  const install = () => apt(['install', '-y', '--no-install-recommends', ...missing])
  apt(['update'])
  if (!install()) refuse('apt-get failed; its message is above')
}

/** promtool without its package, whose service would start. */
export function unpackPromtool() {
  const tool = join(ROOT, '.tools', 'promtool')
  if (existsSync(tool)) return
  say('unpacking promtool from Debian')
  mkdirSync(join(ROOT, '.tools'), { recursive: true })
  const folder = mkdtempSync(join(ROOT, '.tools', 'prometheus-'))
  // Otherwise apt complains that its own user may not write there.
  const asMe = ['-o', 'APT::Sandbox::User=root']
  const downloaded = run('apt-get', ['-qq', ...asMe, 'download', 'prometheus'], { cwd: folder })
  const archive = readdirSync(folder).find((name) => name.endsWith('.deb'))
  if (!downloaded || !archive || !run('dpkg', ['-x', archive, '.'], { cwd: folder }))
    fail('apt-get download failed; its message is above (it may work after apt-get update)')
  copyFileSync(join(folder, 'usr', 'bin', 'promtool'), tool)
  rmSync(folder, { recursive: true })
}
