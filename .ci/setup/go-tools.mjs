// Test tools built from Go modules (test/tools), in .tools. If they cannot be built, the tests that need them say so.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { output, ROOT, run, say } from './console.mjs'
import { whenChanged } from './when-changed.mjs'

const TOOLS = join(ROOT, '.tools')

/** Always the Go from .ci/python-lock.txt: the machine's may be too old, and the tools were tested with this one. */
export const GO = join(ROOT, '.venv', 'bin', 'go')

export function buildS3Server() {
  fromModule(
    's3',
    { what: 'the S3 server of the tests (a minute)', tests: 'that need an S3 server' },
    (build) => build(TOOLS, ['.']),
  )
}

/** oapi-codegen. */
export function buildClientGenerator() {
  const about = { what: 'oapi-codegen, which makes clients in Go (a minute)', tests: 'of clients in Go' }
  fromModule('clients', about, (build) => build(TOOLS, ['tool']))
}

/** helm, helm-unittest and kubeconform. */
export function buildChartTools() {
  const about = {
    what: 'the tools that check the chart: helm, helm-unittest, kubeconform (minutes)',
    tests: 'of the chart',
  }
  fromModule('chart', about, (build) => build(TOOLS, ['tool']))
}

/** The programs of a single-machine Kubernetes, and the stages of kwok, which simulates pods. */
export function buildKubernetes() {
  const about = { what: 'Kubernetes (ten minutes and 5 GB of Go caches)', tests: 'on Kubernetes' }
  fromModule('kube', about, (build, source) => {
    const version = /k8s\.io\/kubernetes v(\S+)/.exec(readFileSync(join(source, 'go.mod'), 'utf8'))?.[1] ?? ''
    const kubernetes = [
      'kube-apiserver',
      'kube-controller-manager',
      'kube-scheduler',
      'kubectl',
      'kubelet',
      'kube-proxy',
    ]
    return (
      build(TOOLS, [...kubernetes.map((name) => `k8s.io/kubernetes/cmd/${name}`)], versionFlags(version)) &&
      build(TOOLS, ['sigs.k8s.io/kwok/cmd/kwok', './pause']) &&
      build(join(TOOLS, 'etcd'), ['go.etcd.io/etcd/server/v3']) &&
      keepKwokStages(source)
    )
  })
}

/** Otherwise the server reports v0.0.0, which no chart that requires a version accepts. */
function versionFlags(version) {
  const [major, minor] = version.split('.')
  return ['k8s.io/component-base/version', 'k8s.io/client-go/pkg/version']
    .flatMap((name) => [
      `-X ${name}.gitVersion=v${version}`,
      `-X ${name}.gitMajor=${major}`,
      `-X ${name}.gitMinor=${minor}`,
      `-X ${name}.gitTreeState=clean`,
    ])
    .join(' ')
}

function keepKwokStages(source) {
  const module = output(GO, ['list', '-m', '-f', '{{.Dir}}', 'sigs.k8s.io/kwok'], { cwd: source }).trim()
  if (!existsSync(module)) return false
  const stages = [
    ['node/fast', 'node-'],
    ['node/heartbeat-with-lease', 'node-'],
    ['pod/fast', 'pod-'],
  ].flatMap(([folder, prefix]) => {
    const path = join(module, 'kustomize', 'stage', folder)
    const names = readdirSync(path).filter((name) => name.startsWith(prefix) && name.endsWith('.yaml'))
    return names.map((name) => readFileSync(join(path, name), 'utf8'))
  })
  writeFileSync(join(TOOLS, 'kwok-stages.yaml'), stages.join('\n---\n'))
  return true
}

/** Calls `make` if the module test/tools/`name` has changed, with a function that builds packages of it. */
function fromModule(name, about, make) {
  const source = join(ROOT, 'test', 'tools', name)
  const names = ['go.mod', 'go.sum', 'main.go', 'pause/main.go']
  const inputs = names.map((file) => join(source, file)).filter((file) => existsSync(file))
  whenChanged(join(TOOLS, `${name}.sources`), inputs, () => {
    const lost = `tests ${about.tests} are skipped`
    say(`building ${about.what}`)
    // The checksums in the repository apply, whatever the environment says about modules.
    const build = (target, packages, flags = '') => {
      const options = ['-mod=readonly', '-trimpath', '-buildvcs=false', `-ldflags=-s -w ${flags}`]
      return run(GO, ['build', ...options, '-o', target, ...packages], { cwd: source })
    }
    return make(build, source) || say(`go failed, its message is above: ${lost}`)
  })
}
