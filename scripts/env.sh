# Source this: the ROS 2 environment of this project, and our own package on top of it where it is built.
# A ROS 2 that is already sourced (ROS_DISTRO set) is used as it is; else the wheels in .ros/<distro> are.
# OPENLINK_ROOT is the project's folder; ROS chooses the distribution of the wheels (kilted, jazzy).
_root="${OPENLINK_ROOT:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)}"
export OPENLINK_ROOT="$_root"
if [ -z "${ROS_DISTRO:-}" ]; then
  _ros="$_root/.ros/${ROS:-kilted}"
  export ROS_DISTRO="${ROS:-kilted}" ROS_VERSION=2 ROS_PYTHON_VERSION=3
  export AMENT_PREFIX_PATH="$_ros" CMAKE_PREFIX_PATH="$_ros" PATH="$_ros/bin:$PATH"
  export OPENLINK_ROS_PYTHON="$_ros/bin/python"
fi
export OPENLINK_ROS_PYTHON="${OPENLINK_ROS_PYTHON:-python3}"
export OPENLINK_INSTALL="${OPENLINK_INSTALL:-$_root/install/$ROS_DISTRO}"
export OPENLINK_BUILD="${OPENLINK_BUILD:-$_root/build/$ROS_DISTRO}"
if [ -f "$OPENLINK_INSTALL/share/crazyflie_openlink/local_setup.bash" ]; then
  # shellcheck disable=SC1091
  AMENT_CURRENT_PREFIX="$OPENLINK_INSTALL" . "$OPENLINK_INSTALL/share/crazyflie_openlink/local_setup.bash"
  case ":$AMENT_PREFIX_PATH:" in
    *":$OPENLINK_INSTALL:"*) ;;
    *) export AMENT_PREFIX_PATH="$OPENLINK_INSTALL:$AMENT_PREFIX_PATH" ;;
  esac
  export LD_LIBRARY_PATH="$OPENLINK_INSTALL/lib:${LD_LIBRARY_PATH:-}"
  for _site in "$OPENLINK_INSTALL"/lib/python3*/site-packages "$OPENLINK_INSTALL"/local/lib/python3*/dist-packages; do
    [ -d "$_site" ] && export PYTHONPATH="$_site:${PYTHONPATH:-}"
  done
fi
unset _root _ros _site
