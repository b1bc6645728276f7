# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0

# A sandbox has no network. What libraries look at when they are loaded is here; connecting is a SocketError.
class SocketError < StandardError; end

class BasicSocket < IO
  REASON = "a sandbox has no network"
  private_constant :REASON

  class << self
    attr_accessor :do_not_reverse_lookup

    def new(*, **) = raise(SocketError, REASON)
    alias open new
    alias for_fd new
    alias pair new
    alias socketpair new
    alias tcp new
    alias udp new
    alias unix new
    alias getaddrinfo new
    alias gethostbyname new
    alias getservbyname new
  end
end

class Socket < BasicSocket
  module Constants
    AF_UNSPEC = PF_UNSPEC = 0
    AF_UNIX = PF_UNIX = 1
    AF_INET = PF_INET = 2
    AF_INET6 = PF_INET6 = 10
    SOCK_STREAM = 1
    SOCK_DGRAM = 2
    SOL_SOCKET = 1
    SO_REUSEADDR = 2
    SO_KEEPALIVE = 9
    IPPROTO_TCP = 6
    IPPROTO_UDP = 17
    TCP_NODELAY = 1
    SOMAXCONN = 128
    INADDR_ANY = 0
    NI_NUMERICHOST = 1
    AI_PASSIVE = 1
  end
  include Constants
  Constants.constants.each { |name| const_set(name, Constants.const_get(name)) unless const_defined?(name, false) }

  class ResolutionError < SocketError; end

  def self.gethostname = "localhost"
  def self.ip_address_list = []
end

class IPSocket < BasicSocket
  def self.getaddress(*) = raise(SocketError, "a sandbox has no network")
end

class TCPSocket < IPSocket; end
class TCPServer < TCPSocket; end
class UDPSocket < IPSocket; end
class UNIXSocket < BasicSocket; end
class UNIXServer < UNIXSocket; end

class Addrinfo
  def self.method_missing(*, **) = raise(SocketError, "a sandbox has no network")
  def self.respond_to_missing?(*) = false
end
