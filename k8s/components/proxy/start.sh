# Starts nginx with nginx.conf. Where the kernel has IPv6, nginx also listens on [::], which is an error elsewhere.
if [ -f /proc/net/if_inet6 ]; then
    echo "listen [::]:8080 backlog=1024;" > /tmp/ipv6-clients.conf
    echo "listen [::]:8081;" > /tmp/ipv6-live.conf
fi
exec nginx -c /etc/nginx/fillmask/nginx.conf
