# Source this: the ROS 2 environment of this project, and our own package on top of it where it is built.
# A ROS 2 that is already sourced (ROS_DISTRO set) is used as it is; else the wheels in .ros/<distro> are.
# OPENLINK_ROOT is the project's folder; ROS chooses the distribution of the wheels (kilted, jazzy).
export OPENLINK_ROOT="${OPENLINK_ROOT:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)}"

# Puts a folder in front of a path list unless it is there already.
_openlink_prepend() {
  local list="${!1:-}"
  case ":$list:" in *":$2:"*) ;; *) export "$1=$2${list:+:$list}" ;; esac
}

# Container images set ROS_DISTRO for every shell, sourced or not.
if [ -n "${ROS_DISTRO:-}" ] && [ -z "${AMENT_PREFIX_PATH:-}" ]; then
  if [ -f "/opt/ros/$ROS_DISTRO/setup.bash" ]; then
    # setup.bash reads variables that are not set.
    _openlink_flags="$-"; set +u
    . "/opt/ros/$ROS_DISTRO/setup.bash"
    case "$_openlink_flags" in *u*) set -u ;; esac
  else
    echo "ROS_DISTRO is $ROS_DISTRO, but no ROS 2 is sourced: source its setup.bash, or unset ROS_DISTRO" >&2
    return 1
  fi
fi
# The wheels, unless another ROS is sourced; OPENLINK_WHEELS tells a wheel environment that is sourced already.
if [ -z "${ROS_DISTRO:-}" ] || [ -n "${OPENLINK_WHEELS:-}" ]; then
  if [ -n "${OPENLINK_WHEELS:-}" ] && [ -n "${ROS:-}" ] && [ "$ROS" != "$ROS_DISTRO" ]; then
    echo "the environment of ROS 2 $ROS_DISTRO is sourced: take a fresh shell for ROS=$ROS" >&2
    return 1
  fi
  export ROS_DISTRO="${ROS_DISTRO:-${ROS:-kilted}}" ROS_VERSION=2 ROS_PYTHON_VERSION=3
  export OPENLINK_WHEELS="$OPENLINK_ROOT/.ros/$ROS_DISTRO"
  if [ ! -f "$OPENLINK_WHEELS/.complete" ]; then
    echo "ROS 2 $ROS_DISTRO is not in $OPENLINK_WHEELS: run make env" >&2
    unset ROS_DISTRO ROS_VERSION ROS_PYTHON_VERSION OPENLINK_WHEELS
    return 1
  fi
  _openlink_prepend AMENT_PREFIX_PATH "$OPENLINK_WHEELS"
  _openlink_prepend CMAKE_PREFIX_PATH "$OPENLINK_WHEELS"
  _openlink_prepend PATH "$OPENLINK_WHEELS/bin"
  # CMake prefers the Python of an active virtual environment.
  export VIRTUAL_ENV="$OPENLINK_WHEELS" OPENLINK_ROS_PYTHON="$OPENLINK_WHEELS/bin/python"
fi
export OPENLINK_ROS_PYTHON="${OPENLINK_ROS_PYTHON:-$(command -v python3)}"
export OPENLINK_BUILD="${OPENLINK_BUILD:-$OPENLINK_ROOT/build/$ROS_DISTRO}"
export OPENLINK_INSTALL="${OPENLINK_INSTALL:-$OPENLINK_ROOT/install/$ROS_DISTRO}"
if [ -d "$OPENLINK_INSTALL/share/crazyflie_openlink" ]; then
  _openlink_prepend AMENT_PREFIX_PATH "$OPENLINK_INSTALL"
  _openlink_prepend PATH "$OPENLINK_INSTALL/bin"
  _openlink_prepend LD_LIBRARY_PATH "$OPENLINK_INSTALL/lib"
  for _openlink_site in "$OPENLINK_INSTALL"/lib/python3*/site-packages \
    "$OPENLINK_INSTALL"/local/lib/python3*/dist-packages "$OPENLINK_INSTALL"/lib/python3*/dist-packages; do
    [ ! -d "$_openlink_site" ] || _openlink_prepend PYTHONPATH "$_openlink_site"
  done
fi
unset -f _openlink_prepend
unset _openlink_site _openlink_flags
