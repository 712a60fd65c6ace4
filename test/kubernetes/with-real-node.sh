#!/bin/sh
# with-real-node.sh COMMAND...: runs COMMAND beside a Kubernetes of one real node, with KUBECONFIG set: etcd, API server,
# controller manager, scheduler, containerd, kubelet, kube-proxy, all of .tools and of Debian. They and COMMAND are in
# network, mount and process namespaces of their own, their files on a tmpfs: nothing is left when COMMAND ends. Needs root.
#   IMAGES      archives of images to load
#   NODE_LOGS   a folder for the logs of all programs
# Not there: a network to the outside, storage classes, enforcement of NetworkPolicy. Cluster DNS is asked for at $NODE_IP,
# where COMMAND may answer.
set -eu
if [ -z "${IN_REAL_NODE:-}" ]; then
  status=0
  IN_REAL_NODE=1 unshare --net --mount --pid --fork --kill-child --mount-proc --propagation private sh "$0" "$@" || status=$?
  # The kernel keeps control groups without processes.
  for group in /sys/fs/cgroup/*/k8s.io /sys/fs/cgroup/*/kubepods /sys/fs/cgroup/k8s.io /sys/fs/cgroup/kubepods; do
    if [ -d "$group" ]; then find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true; fi
  done
  exit "$status"
fi

ROOT=$(cd "$(dirname "$0")/../.." && pwd)
TOOLS=$ROOT/.tools
PATH=$TOOLS:$PATH
mount --make-rshared /
HOME_FOLDER=$(mktemp -d /tmp/capfleet-node-XXXXXX)
mount -t tmpfs -o size=8g tmpfs "$HOME_FOLDER"
cd "$HOME_FOLDER"
mkdir logs cni
end() {
  status=$?
  if [ -n "${NODE_LOGS:-}" ]; then mkdir -p "$NODE_LOGS" && cp "$HOME_FOLDER"/logs/*.log "$NODE_LOGS"; fi
  # Ends all processes of this namespace: any that still tears down a pod would write to the folder below the tmpfs,
  # which is the machine's.
  kill -s KILL -- -1
  wait
  cd / && umount --lazy "$HOME_FOLDER" && rmdir "$HOME_FOLDER"
  exit "$status"
}
trap end EXIT

start() {
  name=$1
  shift
  "$@" > "logs/$name.log" 2>&1 &
}

# until_well SECONDS WHAT COMMAND...
until_well() {
  tries=$(($1 * 10)) what=$2
  shift 2
  while ! "$@" > /dev/null 2>&1; do
    tries=$((tries - 1))
    if [ "$tries" -le 0 ]; then echo "with-real-node: $what; see the logs (NODE_LOGS)" >&2 && exit 1; fi
    sleep 0.1
  done
}

# A node needs an address and a default route; nothing answers at the route's gateway.
export NODE_IP=10.99.0.1
ip link set lo up
ip link add node type veth peer name outside
ip addr add $NODE_IP/24 dev node
ip link set node up
ip link set outside up
ip route add default via 10.99.0.254 dev node
echo 1 > /proc/sys/net/ipv4/ip_forward

cat > cni/bridge.conflist <<END
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "pods0", "isGateway": true, "hairpinMode": true, "ipam": {"type": "host-local",
    "dataDir": "$HOME_FOLDER/ipam", "ranges": [[{"subnet": "10.244.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
END
cat > containerd.toml <<END
version = 2
root = "$HOME_FOLDER/containerd"
state = "$HOME_FOLDER/containerd-state"
[grpc]
  address = "$HOME_FOLDER/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$HOME_FOLDER/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
END
start containerd containerd -c containerd.toml

ETCD=http://127.0.0.1:2379
start etcd etcd --data-dir etcd --unsafe-no-fsync --listen-client-urls $ETCD --advertise-client-urls $ETCD
openssl genrsa -out sa.key 2048 2> /dev/null
TOKEN=$(openssl rand -hex 16)
echo "$TOKEN,admin,1,\"system:masters\"" > tokens.csv
start apiserver kube-apiserver --etcd-servers=$ETCD --bind-address=$NODE_IP --advertise-address=$NODE_IP --secure-port=6443 \
  --cert-dir=certs --token-auth-file=tokens.csv --authorization-mode=RBAC --allow-privileged=true \
  --service-account-key-file=sa.key --service-account-signing-key-file=sa.key \
  --service-account-issuer=https://kubernetes.default.svc --service-cluster-ip-range=10.96.0.0/16 \
  --kubelet-preferred-address-types=InternalIP
export KUBECONFIG="$HOME_FOLDER/kubeconfig"
cat > kubeconfig <<END
apiVersion: v1
kind: Config
clusters: [{name: node, cluster: {server: "https://$NODE_IP:6443", certificate-authority: "$HOME_FOLDER/certs/apiserver.crt"}}]
users: [{name: admin, user: {token: "$TOKEN"}}]
contexts: [{name: node, context: {cluster: node, user: admin}}]
current-context: node
END
until_well 60 'the API server does not answer' kubectl get --raw /readyz

start controller-manager kube-controller-manager --kubeconfig=kubeconfig --service-account-private-key-file=sa.key \
  --leader-elect=false --root-ca-file=certs/apiserver.crt --bind-address=127.0.0.1 --secure-port=0
start scheduler kube-scheduler --kubeconfig=kubeconfig --leader-elect=false --bind-address=127.0.0.1 --secure-port=0

until_well 30 'containerd does not answer' ctr -a containerd.sock version
for archive in ${IMAGES:-}; do ctr -a containerd.sock -n k8s.io images import "$archive" > /dev/null; done

cat > kubelet.yaml <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $NODE_IP
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: unix://$HOME_FOLDER/containerd.sock
clusterDNS: [$NODE_IP]
clusterDomain: cluster.local
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
evictionHard: {memory.available: "1Mi", nodefs.available: "0%", imagefs.available: "0%"}
imageGCHighThresholdPercent: 100
oomScoreAdj: 0
podLogsDir: $HOME_FOLDER/pod-logs
END
start kubelet kubelet --config=kubelet.yaml --kubeconfig=kubeconfig --root-dir="$HOME_FOLDER/kubelet" \
  --cert-dir="$HOME_FOLDER/kubelet-certs" --hostname-override=node-0 --node-ip=$NODE_IP
start kube-proxy kube-proxy --kubeconfig=kubeconfig --hostname-override=node-0 --proxy-mode=iptables \
  --cluster-cidr=10.244.0.0/24 --conntrack-max-per-core=0 --conntrack-tcp-timeout-established=0 \
  --healthz-bind-address=127.0.0.1:10256 --metrics-bind-address=127.0.0.1:10249
until_well 60 'the kubelet makes no node' kubectl get node node-0
kubectl wait --for=condition=Ready node/node-0 --timeout=60s > /dev/null

cd "$ROOT"
"$@"
